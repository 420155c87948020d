//! Gates on every pipeline that the engine may compose: what naga, the backends' languages and the Rust side say of it.
//!
//! One test a scheme variant and gate. A failure names the pipeline.

use std::{collections::BTreeMap, process::Command, sync::OnceLock};

use gatherum::{
    Scheme,
    testing::{self, ComposedShader},
};
use libtest_mimic::{Arguments, Failed, Trial};
use naga::{
    AddressSpace, Module, ShaderStage, TypeInner,
    back::{PipelineConstants, glsl, hlsl, msl, pipeline_constants::process_overrides, spv},
    proc::{BoundsCheckPolicies, Layouter},
    valid::{Capabilities, ModuleInfo, ValidationFlags, Validator},
};

/// Limits of WebGPU that every device has.
const STORAGE_BUFFERS: usize = 8;
const UNIFORM_BUFFERS: usize = 12;
const BIND_GROUPS: u32 = 4;
const INVOCATIONS: u32 = 256;
const WORKGROUP_BYTES: u32 = 16_384;

type Gate = fn(&Pipeline) -> Result<(), Failed>;
type Parsed = Result<(Module, ModuleInfo), String>;

/// A pipeline, read once for all gates.
struct Pipeline {
    shader: ComposedShader,
    parsed: OnceLock<Parsed>,
    specialised: OnceLock<Parsed>,
}

const GATES: [(&str, Gate); 8] = [
    ("plain", plain),
    ("limits", limits),
    ("params", params),
    ("constants", constants),
    ("spirv", to_spirv),
    ("msl", to_msl),
    ("hlsl", to_hlsl),
    ("gles", to_gles),
];

fn main() {
    let arguments = Arguments::from_args();
    let mut groups = BTreeMap::<String, Vec<Pipeline>>::new();
    for shader in testing::shaders() {
        let group = shader.label.split(' ').take(2).collect::<Vec<_>>().join(".");
        groups.entry(group).or_default().push(Pipeline {
            shader,
            parsed: OnceLock::new(),
            specialised: OnceLock::new(),
        });
    }
    let names: Vec<String> = groups.keys().cloned().collect();
    let mut trials = vec![Trial::test("every_scheme_has_a_pipeline", move || every_scheme(&names))];
    let tint = Command::new("tint").arg("--help").output().is_ok();
    for (group, shaders) in groups {
        let shaders: &'static [Pipeline] = shaders.leak();
        for (name, gate) in GATES {
            trials.push(Trial::test(format!("{name}::{group}"), move || each(shaders, gate)));
        }
        let trial = Trial::test(format!("tint::{group}"), move || each(shaders, through_tint));
        trials.push(if tint { trial } else { trial.with_kind("tint is not installed").with_ignored_flag(true) });
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn each(shaders: &[Pipeline], gate: Gate) -> Result<(), Failed> {
    shaders.iter().try_for_each(|pipeline| {
        let label = &pipeline.shader.label;
        gate(pipeline).map_err(|error| format!("{label}: {}", error.message().unwrap_or("failed")).into())
    })
}

fn every_scheme(groups: &[String]) -> Result<(), Failed> {
    for text in Scheme::all().iter().flat_map(|info| info.variants) {
        let suffix = format!(".{text}");
        ensure(groups.iter().any(|group| group.ends_with(&suffix)), || format!("no pipeline for `{text}`"))?;
    }
    Ok(())
}

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(message().into()) }
}

impl Pipeline {
    /// Parsed, and validated with no capability at all, but for one name: naga has a flag for `unpack2x16float`, which is
    /// core WGSL, since a driver needs native f16 for it. wgpu grants the flag on every adapter that WebGPU allows.
    fn parsed(&self) -> Result<&(Module, ModuleInfo), Failed> {
        let parse = || {
            let source = &self.shader.source;
            let module = naga::front::wgsl::parse_str(source).map_err(|error| error.emit_to_string(source))?;
            let halves = source.contains("pack2x16float(");
            let capabilities = if halves { Capabilities::SHADER_FLOAT16_IN_FLOAT32 } else { Capabilities::empty() };
            let info = Validator::new(ValidationFlags::all(), capabilities)
                .validate(&module)
                .map_err(|error| error.emit_to_string(source))?;
            Ok((module, info))
        };
        Ok(self.parsed.get_or_init(parse).as_ref()?)
    }

    /// With its constants in place, as a pipeline of a table has it.
    fn specialised(&self) -> Result<&(Module, ModuleInfo), Failed> {
        let (module, info) = self.parsed()?;
        let specialise = || {
            let constants: PipelineConstants =
                self.shader.constants.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            let entry = Some((ShaderStage::Compute, self.shader.entry));
            let (module, info) =
                process_overrides(module, info, entry, &constants).map_err(|error| error.to_string())?;
            Ok((module.into_owned(), info.into_owned()))
        };
        Ok(self.specialised.get_or_init(specialise).as_ref()?)
    }
}

/// No feature is asked for, and the entry point is there.
fn plain(pipeline: &Pipeline) -> Result<(), Failed> {
    let (module, _) = pipeline.parsed()?;
    for line in pipeline.shader.source.lines() {
        let word = line.split_whitespace().next().unwrap_or_default();
        ensure(!["enable", "requires"].contains(&word), || format!("`{line}`"))?;
    }
    ensure(
        module
            .entry_points
            .iter()
            .any(|entry| entry.name == pipeline.shader.entry && entry.stage == ShaderStage::Compute),
        || format!("no compute entry point `{}`", pipeline.shader.entry),
    )
}

fn limits(pipeline: &Pipeline) -> Result<(), Failed> {
    let (module, info) = pipeline.specialised()?;
    let index =
        module.entry_points.iter().position(|entry| entry.name == pipeline.shader.entry).ok_or("no entry point")?;
    let invocations: u32 = module.entry_points[index].workgroup_size.iter().product();
    ensure((1..=INVOCATIONS).contains(&invocations), || format!("{invocations} threads a workgroup"))?;
    let mut layouter = Layouter::default();
    layouter.update(module.to_ctx())?;
    let used = info.get_entry_point(index);
    let (mut storage, mut uniform, mut workgroup) = (0, 0, 0);
    for (handle, variable) in module.global_variables.iter() {
        if used[handle].is_empty() {
            continue;
        }
        match variable.space {
            AddressSpace::Storage { .. } => storage += 1,
            AddressSpace::Uniform => uniform += 1,
            AddressSpace::WorkGroup => workgroup += layouter[variable.ty].size,
            AddressSpace::Private | AddressSpace::Function => {}
            other => return Err(format!("`{}` is in {other:?}", name(&variable.name)).into()),
        }
        if let Some(binding) = &variable.binding {
            ensure(binding.group < BIND_GROUPS, || {
                format!("`{}` is in group {}", name(&variable.name), binding.group)
            })?;
        }
    }
    ensure(storage <= STORAGE_BUFFERS, || format!("{storage} storage buffers"))?;
    ensure(uniform <= UNIFORM_BUFFERS, || format!("{uniform} uniform buffers"))?;
    ensure(workgroup <= WORKGROUP_BYTES, || format!("{workgroup} bytes of workgroup memory"))
}

fn name(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or("_")
}

/// `Params` has the members, offsets and sizes of the Rust struct that fills it.
fn params(pipeline: &Pipeline) -> Result<(), Failed> {
    let (module, _) = pipeline.specialised()?;
    let mut layouter = Layouter::default();
    layouter.update(module.to_ctx())?;
    let found = module.types.iter().find(|(_, ty)| ty.name.as_deref() == Some("Params"));
    let Some((_, naga::Type { inner: TypeInner::Struct { members, .. }, .. })) = found else {
        return Err("no struct `Params`".into());
    };
    let wgsl: Vec<(&str, usize, usize)> = members
        .iter()
        .map(|member| (name(&member.name), member.offset as usize, layouter[member.ty].size as usize))
        .collect();
    let rust = testing::params_layout();
    ensure(wgsl == rust, || format!("`Params` (name, offset, size) is in WGSL\n{wgsl:?}\nand in Rust\n{rust:?}"))
}

/// Every constant that Rust sets is an override of the pipeline, and none is left without a value.
fn constants(pipeline: &Pipeline) -> Result<(), Failed> {
    let (module, _) = pipeline.parsed()?;
    for (constant, _) in &pipeline.shader.constants {
        let known = module.overrides.iter().any(|(_, other)| other.name.as_deref() == Some(*constant));
        ensure(known, || format!("`{constant}` is no override"))?;
    }
    for (_, constant) in module.overrides.iter().filter(|(_, constant)| constant.init.is_none()) {
        let set = pipeline.shader.constants.iter().any(|(other, _)| Some(*other) == constant.name.as_deref());
        ensure(set, || format!("override `{}` has no value", name(&constant.name)))?;
    }
    Ok(())
}

fn to_spirv(pipeline: &Pipeline) -> Result<(), Failed> {
    let (module, info) = pipeline.specialised()?;
    // What every Vulkan device has.
    let capabilities = [spv::Capability::Shader].into_iter().collect();
    let options = spv::Options { capabilities: Some(capabilities), ..Default::default() };
    let stage =
        spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: pipeline.shader.entry.to_owned() };
    let words = spv::write_vec(module, info, &options, Some(&stage))?;
    ensure(words.len() > 5, || "an empty module".to_owned())
}

fn to_msl(pipeline: &Pipeline) -> Result<(), Failed> {
    let (module, info) = pipeline.specialised()?;
    let (text, translation) =
        msl::write_string(module, info, &msl::Options::default(), &msl::PipelineOptions::default())?;
    for entry in translation.entry_point_names {
        entry?;
    }
    ensure(text.contains("kernel void"), || "no kernel".to_owned())
}

fn to_hlsl(pipeline: &Pipeline) -> Result<(), Failed> {
    let (module, info) = pipeline.specialised()?;
    let (options, stage) = (hlsl::Options::default(), hlsl::PipelineOptions::default());
    let mut text = String::new();
    let reflection = hlsl::Writer::new(&mut text, &options, &stage).write(module, info, None)?;
    for entry in reflection.entry_point_names {
        entry?;
    }
    ensure(text.contains("numthreads"), || "no kernel".to_owned())
}

fn to_gles(pipeline: &Pipeline) -> Result<(), Failed> {
    let (module, info) = pipeline.specialised()?;
    let options = glsl::Options { version: glsl::Version::new_gles(310), ..Default::default() };
    let stage = glsl::PipelineOptions {
        shader_stage: ShaderStage::Compute,
        entry_point: pipeline.shader.entry.to_owned(),
        multiview: None,
    };
    let mut text = String::new();
    glsl::Writer::new(&mut text, module, info, &options, &stage, BoundsCheckPolicies::default())?.write()?;
    ensure(text.starts_with("#version 310 es"), || "no GLSL ES 3.10".to_owned())
}

/// What Chromium compiles with.
fn through_tint(pipeline: &Pipeline) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("shader.wgsl");
    std::fs::write(&file, &pipeline.shader.source)?;
    let constants: Vec<String> =
        pipeline.shader.constants.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut command = Command::new("tint");
    command
        .args(["--format", "wgsl", "--entry-point", pipeline.shader.entry, "-o"])
        .arg(folder.path().join("out.wgsl"));
    if !constants.is_empty() {
        command.arg("--overrides").arg(constants.join(","));
    }
    let output = command.arg(&file).output()?;
    ensure(output.status.success(), || String::from_utf8_lossy(&output.stderr).into_owned())
}
