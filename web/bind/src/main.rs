//! Makes the JavaScript side of a WebAssembly module, as the command `wasm-bindgen` does, whose version must be that of the
//! crate: here both are what Cargo.lock says.
//!
//! ```text
//! gatherum-web-bind MODULE.wasm FOLDER      writes FOLDER/gatherum.js, .d.ts and _bg.wasm
//! ```

use std::{env, process::ExitCode};

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [module, folder] = &*arguments else {
        eprintln!("usage: gatherum-web-bind MODULE.wasm FOLDER");
        return ExitCode::from(2);
    };
    let bound = Bindgen::new().input_path(module).out_name("gatherum").web(true).and_then(|bindgen| {
        bindgen.typescript(true).remove_name_section(true).remove_producers_section(true).generate(folder)
    });
    match bound {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{module}: {error:?}");
            ExitCode::FAILURE
        }
    }
}
