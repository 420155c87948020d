//! One suite, stamped on every scheme, operation and backend: the same answers everywhere.
//!
//! A test is a case, a variant of a scheme and a backend: `a01_bad_ids::int8:affine::lavapipe`; in brackets before it
//! stands the operation. Variants come from the registry of schemes, so a new scheme is tested by being there; backends
//! come from the table in `backend.rs`: the host, and each adapter found. Cases that are not about schemes are stamped on
//! backends alone.
//!
//! What a case believes is an f64 loop over the stored codes (`EncodedTable::reference`) and its own reading of ids and
//! policies; no code of a backend judges that backend.
//!
//! ```text
//! GATHERUM_TEST_ADAPTERS=lavapipe,swiftshader,gl   adapters that must be there: one that is not is a failed test
//! GATHERUM_TEST_ADAPTERS=gpu                       the first adapter that is no software
//! (not set)                                        adapters that are not there are ignored, visibly
//! GATHERUM_TEST_TIMES=FILE                         each test appends its milliseconds and its name to that file
//! ```

mod backend;
mod bagged;
mod bags;
mod bits;
mod case;
mod child;
mod devices;
mod dynamic;
mod dynamic_device;
mod fixture;
mod hashed;
mod ids;
#[cfg(feature = "journal")]
mod kills;
mod large;
mod ledger;
mod lookup;
mod loss;
mod model;
mod names;
mod neutral;
mod on_demand;
mod pool;
mod random;
mod scores;
mod shapes;
mod tiers;
mod values;
#[cfg(feature = "journal")]
mod versions;

use std::process::ExitCode;

use case::Case;
use libtest_mimic::Arguments;

/// Every case of the suite.
const CASES: &[&[Case]] = &[
    ids::CASES,
    hashed::CASES,
    shapes::CASES,
    large::CASES,
    values::CASES,
    scores::CASES,
    bits::CASES,
    bags::CASES,
    ledger::CASES,
    pool::CASES,
    child::CASES,
    devices::CASES,
    loss::CASES,
    neutral::CASES,
    on_demand::CASES,
    tiers::CASES,
    dynamic::CASES,
    dynamic_device::CASES,
    random::CASES,
    #[cfg(feature = "journal")]
    kills::CASES,
    #[cfg(feature = "journal")]
    versions::CASES,
];

fn main() -> ExitCode {
    if let Some(code) = child::run() {
        return code;
    }
    let arguments = Arguments::from_args();
    let trials = case::trials(CASES.iter().copied().flatten());
    libtest_mimic::run(&arguments, trials).exit_code()
}
