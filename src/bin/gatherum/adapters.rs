//! `adapters`: what there is to run on.

use std::io::Write;

use gatherum::{AdapterReport, BackendChoice, BackendInfo, Bytes, Engine, wgpu};
use serde_json::{Map, Value, json};

use crate::{backend::BackendArgs, failure::Outcome, output};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Answer as JSON, with all limits that the kernels meet
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, backend: &BackendArgs, out: &mut dyn Write) -> Outcome {
    let adapters = Engine::adapters_blocking();
    let host = Engine::host().backend().clone();
    // Its warning that there is no GPU is what the answer says anyway.
    let quiet = tracing::subscriber::NoSubscriber::new();
    let auto =
        tracing::subscriber::with_default(quiet, || Engine::builder().backend(BackendChoice::Auto).build_blocking())?;
    let auto = auto.backend().clone();
    // What the options or the environment choose: told where it is something else, and an error where it is not there.
    let chosen = match backend.choice() {
        BackendChoice::Auto => auto.clone(),
        _ => backend.engine()?.backend().clone(),
    };
    if args.json {
        let adapters: Vec<Value> = adapters.iter().map(|adapter| adapter_json(adapter, &auto)).collect();
        let answer = json!({
            "adapters": adapters,
            "host": output::backend_json(&host),
            "auto": output::backend_json(&auto),
            "chosen": output::backend_json(&chosen),
        });
        return output::write_json(out, &answer);
    }
    for (number, adapter) in adapters.iter().enumerate() {
        writeln!(out, "{number}  {}", adapter.backend)?;
        writeln!(out, "   engine    {}", verdict(adapter, &auto))?;
        writeln!(out, "   limits    {}", limits_text(&adapter.limits))?;
        writeln!(out, "   features  {}", features_text(adapter))?;
    }
    writeln!(out, "-  {host}")?;
    let taken = if host == auto { "taken by auto: there is no GPU that it takes" } else { "taken by --backend host" };
    writeln!(out, "   engine    {taken}")?;
    if chosen != auto {
        writeln!(out, "chosen by --backend or GATHERUM_BACKEND: {chosen}")?;
    }
    Ok(())
}

/// Whether the engine takes an adapter, and why.
fn verdict(adapter: &AdapterReport, auto: &BackendInfo) -> String {
    match &adapter.verdict {
        Err(error) => format!("not taken: {error}"),
        Ok(()) if adapter.backend == *auto => "taken by auto".to_owned(),
        Ok(()) if adapter.info.device_type == wgpu::DeviceType::Cpu => {
            "taken by name only: it is software, and the host backend is faster".to_owned()
        }
        Ok(()) => "taken by name; auto prefers another".to_owned(),
    }
}

/// The features that the adapter has, none of which the kernels need.
fn features(adapter: &AdapterReport) -> Vec<&'static str> {
    adapter.features.iter_names().map(|(name, _)| name).collect()
}

/// Those that have to do with computing, and how many others there are.
fn features_text(adapter: &AdapterReport) -> String {
    const COMPUTING: [&str; 5] = ["SHADER_", "SUBGROUP", "TIMESTAMP_QUERY", "MAPPABLE", "IMMEDIATES"];
    let (computing, others): (Vec<_>, Vec<_>) =
        features(adapter).into_iter().partition(|name| COMPUTING.iter().any(|start| name.starts_with(start)));
    format!("{}; {} others, which --json lists", computing.join(" "), others.len())
}

/// The limits that the kernels meet, as wgpu spells them.
fn limits(limits: &wgpu::Limits) -> [(&'static str, u64); 9] {
    [
        ("max_storage_buffer_binding_size", limits.max_storage_buffer_binding_size),
        ("max_buffer_size", limits.max_buffer_size),
        ("max_storage_buffers_per_shader_stage", limits.max_storage_buffers_per_shader_stage.into()),
        ("max_bindings_per_bind_group", limits.max_bindings_per_bind_group.into()),
        ("max_compute_invocations_per_workgroup", limits.max_compute_invocations_per_workgroup.into()),
        ("max_compute_workgroup_size_x", limits.max_compute_workgroup_size_x.into()),
        ("max_compute_workgroups_per_dimension", limits.max_compute_workgroups_per_dimension.into()),
        ("min_storage_buffer_offset_alignment", limits.min_storage_buffer_offset_alignment.into()),
        ("max_uniform_buffer_binding_size", limits.max_uniform_buffer_binding_size),
    ]
}

fn limits_text(limits: &wgpu::Limits) -> String {
    format!(
        "binding {}, buffer {}, {} storage buffers a stage, {} workgroups a dimension of {} invocations",
        Bytes(limits.max_storage_buffer_binding_size),
        Bytes(limits.max_buffer_size),
        limits.max_storage_buffers_per_shader_stage,
        limits.max_compute_workgroups_per_dimension,
        limits.max_compute_invocations_per_workgroup,
    )
}

fn adapter_json(adapter: &AdapterReport, auto: &BackendInfo) -> Value {
    let limits: Map<String, Value> =
        limits(&adapter.limits).into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let mut answer = output::backend_json(&adapter.backend);
    answer["limits"] = limits.into();
    answer["features"] = features(adapter).into();
    answer["taken"] = adapter.verdict.is_ok().into();
    answer["by_auto"] = (adapter.backend == *auto).into();
    answer["reason"] = verdict(adapter, auto).into();
    answer
}
