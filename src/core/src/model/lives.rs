//! STUB
use jiff::Timestamp;
use crate::model::{Life, Pod};
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lives;
pub struct Known { pub life: Life }
impl Lives {
    pub fn is_blank(&self) -> bool { true }
    pub fn of_new(&self, _: &Pod, _: Timestamp) -> Known { Known { life: Life::unbounded() } }
    pub fn of(&self, _: &Pod, _: Timestamp) -> Known { Known { life: Life::unbounded() } }
}
