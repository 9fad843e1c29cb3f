//! The object store that an address names, reached as the environment says.

use ikada_api::s3::{Store, StorePlace, StoreSettings};

use crate::failure::Failure;

/// A store that can be asked for this place.
pub(crate) fn open_store(place: &StorePlace) -> Result<Store, Failure> {
    let settings = StoreSettings::read(place.door, |name| std::env::var(name).ok());
    let settings = settings.map_err(|error| Failure::usage(error.to_string()))?;
    if settings.is_in_the_open() {
        eprintln!(
            "ikada: warning: {} is not https: what is sent travels in the open",
            settings.endpoint
        );
    }
    Store::new(settings).map_err(|error| Failure::usage(error.to_string()))
}
