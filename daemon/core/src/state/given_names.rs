//! Names for workers that speak and were given none: short, easy to tell apart and to say to a person.

/// All of them. What comes later gets the same ones with a number: `ada-2`.
pub const GIVEN: &[&str] = &[
    "ada", "adele", "agnes", "aida", "alba", "alda", "alice", "alma", "amara", "amos", "anna", "anton", "arlo", "asta", "astrid", "aurel",
    "ava", "axel", "bela", "bella", "benno", "berta", "bianca", "boris", "bram", "bruno", "cara", "carl", "carla", "cecil", "celia",
    "cesar", "clara", "claus", "clemens", "cleo", "conny", "cora", "cosima", "dana", "dario", "david", "delia", "denis", "diana", "dina",
    "dora", "doris", "edda", "edgar", "edith", "egon", "ela", "elena", "eli", "elias", "elisa", "ella", "elmar", "elsa", "emil", "emma",
    "enno", "enzo", "erik", "erna", "ernst", "esra", "ester", "eva", "fabio", "felix", "ferdi", "fiona", "flora", "florin", "franka",
    "frans", "freya", "frida", "fritz", "gabor", "gala", "georg", "gerda", "gesa", "gita", "golo", "greta", "guido", "gustav", "hana",
    "hanno", "hans", "harald", "hedda", "heidi", "heiko", "helga", "hella", "henri", "herta", "hilda", "holger", "hugo", "ida", "ilka",
    "ilse", "ina", "ines", "inga", "ingo", "irma", "iris", "isa", "isak", "ivan", "ivo", "jaap", "jakob", "jana", "janne", "jara",
    "jasper", "jella", "jens", "jette", "joel", "johann", "jona", "jonas", "jorge", "josef", "judith", "jule", "jurek", "kai", "kaja",
    "karel", "karin", "karla", "kasper", "katja", "kira", "klara", "knut", "konrad", "kora", "lara", "lars", "laura", "lea", "leila",
    "lena", "leo", "leonie", "levi", "lida", "lilo", "lina", "linus", "lisa", "livia", "lorenz", "lotte", "luca", "lucia", "ludwig",
    "luis", "luka", "lydia", "mads", "magda", "maja", "malte", "mara", "marek", "maria", "marta", "mats", "maxim", "meike", "mia", "mika",
    "mila", "mira", "mona", "moritz", "nadja", "nele", "nero", "nico", "nils", "nina", "nora", "nuria", "olaf", "olga", "olivia", "omar",
    "onno", "oscar", "otto", "paul", "paula", "pavel", "peer", "pia", "piet", "pina", "quentin", "rabea", "rahel", "ralf", "ramon",
    "rasmus", "remo", "rene", "rita", "robin", "rocco", "rolf", "romy", "rosa", "ruben", "ruth", "sami", "sandra", "sara", "sasha",
    "selma", "sina", "silas", "simon", "sofia", "sonja", "stella", "sven", "tara", "tamo", "tessa", "theo", "thea", "tilda", "till",
    "timo", "tina", "tobias", "tom", "tove", "ulla", "ulrik", "uma", "urs", "vera", "veit", "viola", "vito", "walter", "wanda", "wido",
    "wilma", "xaver", "yann", "yara", "yorick", "zara", "zeno", "zoe",
];

/// The n-th made-up name of a tree, from 1.
pub fn nth(number: u64) -> String {
    let count = GIVEN.len() as u64;
    let (round, index) = ((number - 1) / count, (number - 1) % count);
    let name = usize::try_from(index).ok().and_then(|index| GIVEN.get(index)).copied().unwrap_or("worker");
    if round == 0 { name.to_owned() } else { format!("{name}-{}", round + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::names;

    #[test]
    fn they_are_good_names_and_all_different() {
        let mut seen = std::collections::BTreeSet::new();
        for number in 1..=3 * GIVEN.len() as u64 {
            let name = nth(number);
            assert_eq!(names::defect(&name), None, "{name}");
            assert!(seen.insert(names::folded(&name)), "{name} comes twice");
        }
        assert_eq!((nth(1).as_str(), nth(GIVEN.len() as u64 + 1).as_str()), ("ada", "ada-2"));
    }
}
