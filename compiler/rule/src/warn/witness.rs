//! Each warning on a layer that deserves it, and its absence on one that does not.
