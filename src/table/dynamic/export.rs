//! All rows at once.

use super::{DynamicTable, calls::Use};
use crate::error::DynamicError;

/// The rows of a dynamic table, by id.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Exported {
    /// Ids that have a row, ascending.
    pub ids: Vec<u64>,
    /// `[ids, dim]`, row-major, in the same order.
    pub values: Vec<f32>,
}

/// Bytes of rows that are read at a time.
const CHUNK: u64 = 32 << 20;

impl DynamicTable {
    /// All rows, by id, as f32: what [`upsert`](Self::upsert) takes, and, without the ids, [`EncodedTable::encode`](crate::EncodedTable::encode).
    /// No row counts as used.
    ///
    /// Calls of other threads meanwhile find their way in row by row: one that they take out is left out, one that they make may be.
    ///
    /// # Errors
    /// [`DynamicError::HostMemory`]; [`DynamicError::Gather`] where scratch would pass the budget, or the device fails.
    ///
    /// # Examples
    /// ```
    /// use gatherum::{DynamicOptions, EncodedTable, Engine};
    /// # pollster::block_on(async {
    /// let table = Engine::host().dynamic_table("t", 2, &DynamicOptions::default()).await?;
    /// table.upsert(&[9_u32, 4], &[0.5, 1.0, 1.5, 2.0]).await?;
    /// let all = table.export().await?;
    /// assert_eq!((all.ids.clone(), all.values.clone()), (vec![4, 9], vec![1.5, 2.0, 0.5, 1.0]));
    ///
    /// // Row `n` of this one is that of `ids[n]`, which a vocabulary can keep as words.
    /// let (saved, _) = EncodedTable::encode("t", &all.values, 2, &"int8".parse()?)?;
    /// # drop(saved);
    ///
    /// table.clear().await?;
    /// table.upsert(&all.ids, &all.values).await?;
    /// assert_eq!(table.export().await?, all);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    pub async fn export(&self) -> Result<Exported, DynamicError> {
        let mut ids: Vec<u64> = self.lock().slots.map.iter().map(|(id, _)| id).collect();
        ids.sort_unstable();
        // All of it, asked for before anything is read.
        let mut exported = Exported { ids: Vec::new(), values: self.zeros(ids.len() as u64)? };
        exported.values.clear();
        let chunk = (CHUNK / (4 * u64::from(self.dim()))).max(1);
        for ids in ids.chunks(usize::try_from(chunk).unwrap_or(usize::MAX)) {
            let mut ids = ids.to_vec();
            let rows = loop {
                ids.retain(|id| self.contains(*id));
                let rows = self.rows((&ids).into(), Use::Look).await?;
                // Else one went meanwhile.
                if rows.bad.count == 0 {
                    break rows;
                }
            };
            exported.ids.extend_from_slice(&ids);
            exported.values.extend_from_slice(&rows.values);
        }
        Ok(exported)
    }

    /// As [`DynamicTable::export`], blocking.
    ///
    /// # Errors
    /// As [`DynamicTable::export`].
    #[cfg(not(target_arch = "wasm32"))]
    pub fn export_blocking(&self) -> Result<Exported, DynamicError> {
        pollster::block_on(self.export())
    }
}
