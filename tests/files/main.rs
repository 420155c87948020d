//! Files: own tables saved, loaded and damaged, and the formats that rows come in.
#![cfg(feature = "files")]

mod damaged;
mod disk;
mod foreign;
mod formats;
mod gguf;
mod npz;
mod on_demand;
mod own;
mod stream;
mod vectors;
#[cfg(feature = "journal")]
mod writable;

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use gatherum::io::Input;

/// The value of a future that never waits: files are read at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("reading a file waits for nothing"),
    }
}

/// All rows, read in blocks of `block` rows.
fn read_by(input: &mut Input, block: usize) -> Result<Vec<f32>, gatherum::SourceError> {
    let shape = input.rows.shape();
    let dim = shape.dim() as usize;
    let mut values = vec![f32::NAN; shape.rows() as usize * dim];
    let mut first = 0;
    for out in values.chunks_mut(block * dim) {
        input.rows.read_rows(first, out)?;
        first += u32::try_from(out.len() / dim).unwrap();
    }
    Ok(values)
}

fn read(input: &mut Input) -> Vec<f32> {
    read_by(input, 2).unwrap()
}
