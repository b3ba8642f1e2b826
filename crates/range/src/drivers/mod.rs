//! The drivers, one file or directory per mode, one line per mode in the table.

use crate::driver::Driver;

/// Every mode that can be played.
pub const DRIVERS: &[&dyn Driver] = &[];
