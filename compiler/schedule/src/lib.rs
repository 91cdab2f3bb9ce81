//! miras-schedule
