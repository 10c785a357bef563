//! The part of `docs/performance.md` between its two markers, which is written anew by each run that is asked to.

const BEGIN: &str = "<!-- figures -->\n";
const END: &str = "<!-- /figures -->";

/// The page with these figures.
///
/// # Errors
/// What is wrong with the page.
pub fn replace(page: &str, figures: &str) -> Result<String, String> {
    let missing = |marker: &str| format!("it has no line {}", marker.trim());
    let (before, rest) = page.split_once(BEGIN).ok_or_else(|| missing(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| missing(END))?;
    Ok(format!("{before}{BEGIN}\n{figures}\n{END}{after}"))
}
