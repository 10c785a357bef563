//! The view on screens of several sizes.
