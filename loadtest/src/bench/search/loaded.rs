//! What is known of a loaded database: who can be asked, and for what.

use serde::{Deserialize, Serialize};

use super::corpus::Class;

/// What a run needs to know of a loaded database.
#[derive(Serialize, Deserialize)]
pub struct Loaded {
    /// How many records there are.
    pub rows: usize,
    /// The largest tenant.
    pub largest: Tenant,
    /// Some small ones.
    pub small: Vec<Tenant>,
    /// Words by how often they occur; some of each class.
    pub rare: Vec<String>,
    pub mid: Vec<String>,
    pub common: Vec<String>,
}

/// A tenant that is searched.
#[derive(Clone, Serialize, Deserialize)]
pub struct Tenant {
    /// Its owner's key.
    pub key: String,
    /// Its number in the database.
    pub id: i32,
}

impl Loaded {
    /// The words of a class.
    pub fn words(&self, class: Class) -> &[String] {
        match class {
            Class::Rare => &self.rare,
            Class::Mid => &self.mid,
            Class::Common => &self.common,
        }
    }
}
