//! Uses of a declaration, as text that is added at the end of another file.

use zit_footprint::{Declaration, Form, Language};

use super::Source;

/// Another file with a use of the declaration, or of one of its members; `None` where none can be written.
pub(crate) fn of<'a>(
    source: &Source,
    declaration: &Declaration<'_>,
    member: Option<&str>,
    sources: &'a [Source],
) -> Option<(&'a Source, String)> {
    let user = sources.iter().find(|other| fits(source, other))?;
    let probe = Probe { source, declaration, member };
    let text = match source.language.family() {
        Language::Rust => probe.rust()?,
        Language::Python => probe.python()?,
        Language::Go => probe.go()?,
        Language::TypeScript => probe.typescript(user)?,
        _ => return None,
    };
    let end = if user.text.ends_with('\n') { "" } else { "\n" };
    Some((user, format!("{}{end}\n{text}\n", user.text)))
}

/// Whether a file can name what the source declares: another one of the same crate, package or language.
fn fits(source: &Source, other: &Source) -> bool {
    let folder = |of: &Source| of.path.path().rsplit_once('/').map(|(folder, _)| folder.to_owned());
    other.path != source.path
        && other.language == source.language
        && match source.language.family() {
            Language::Go => folder(source) == folder(other) && package(source) == package(other),
            Language::Rust => {
                crate_root(source).is_some() && crate_root(source) == crate_root(other)
            }
            _ => true,
        }
}

/// The line that says a Go file's package.
fn package(of: &Source) -> Option<&str> {
    of.text.lines().find(|line| line.starts_with("package "))
}

/// The `src` folder that a Rust file is below.
fn crate_root(of: &Source) -> Option<&str> {
    let path = of.path.path();
    let at =
        path.rfind("/src/").map(|at| at + 4).or_else(|| path.starts_with("src/").then_some(3))?;
    let rest = path.get(at + 1..)?;
    (!rest.starts_with("bin/") && rest != "main.rs").then(|| &path[..at])
}

struct Probe<'a> {
    source: &'a Source,
    declaration: &'a Declaration<'a>,
    member: Option<&'a str>,
}

impl Probe<'_> {
    fn rust(&self) -> Option<String> {
        let Declaration { name, container, inline, form, visibility, unit, .. } = *self.declaration;
        if visibility < 2 && container.is_none() || unit.contains(['@', '#']) {
            return None;
        }
        let root = crate_root(self.source)?;
        let file = self.source.path.path().get(root.len() + 1..)?.strip_suffix(".rs")?;
        let mut modules: Vec<&str> = file.split('/').collect();
        if matches!(modules.last(), Some(&("lib" | "mod"))) {
            modules.pop();
        }
        modules.extend(inline.split('/').filter(|part| !part.is_empty()));
        let path = modules.iter().fold("crate".to_owned(), |path, part| path + "::" + part);
        Some(match (form, container, self.member) {
            (Form::Function, Some(ty), _) => {
                format!("fn zit_probe(value: &{path}::{ty}) {{ value.{name}(); }}")
            }
            (Form::Function, None, _) => format!("fn zit_probe() {{ {path}::{name}(); }}"),
            (Form::Record, _, Some(member)) => {
                format!("fn zit_probe(value: &{path}::{name}) {{ let _ = &value.{member}; }}")
            }
            (Form::Variants, _, Some(member)) => {
                format!("fn zit_probe() {{ let _ = {path}::{name}::{member}; }}")
            }
            (Form::Value, None, _) => format!("fn zit_probe() {{ let _ = {path}::{name}; }}"),
            (Form::Record | Form::Variants | Form::Alias, None, None) => {
                format!("use {path}::{name};\nfn zit_probe(_: {name}) {{}}")
            }
            (Form::Interface, None, _) => {
                format!("struct ZitProbe;\nimpl {path}::{name} for ZitProbe {{}}")
            }
            _ => return None,
        })
    }

    fn python(&self) -> Option<String> {
        let Declaration { name, container, form, unit, .. } = *self.declaration;
        if unit.contains(['@', '#']) || name.starts_with("__") {
            return None;
        }
        let file = self.source.path.path().strip_suffix(".py")?;
        let file = file.strip_prefix("src/").unwrap_or(file);
        let module = file.strip_suffix("/__init__").unwrap_or(file).replace('/', ".");
        let imported = container.unwrap_or(name);
        let import = format!("from {module} import {imported}");
        Some(match (form, container, self.member) {
            (Form::Function, Some(ty), _) => {
                format!("{import}\ndef zit_probe(value: {ty}):\n    value.{name}()")
            }
            (Form::Function, None, _) => format!("{import}\ndef zit_probe():\n    {name}()"),
            (Form::Record, None, Some(member)) => {
                format!("{import}\ndef zit_probe(value: {name}):\n    return value.{member}")
            }
            (Form::Record, None, None) => format!("{import}\nclass ZitProbe({name}):\n    pass"),
            (Form::Value, None, _) => format!("{import}\ndef zit_probe():\n    return {name}"),
            _ => return None,
        })
    }

    fn go(&self) -> Option<String> {
        let Declaration { name, container, form, unit, .. } = *self.declaration;
        if unit.contains('#') || matches!(name, "init" | "main" | "_") {
            return None;
        }
        Some(match (form, container, self.member) {
            (Form::Function, Some(ty), _) => {
                format!("func zitProbe(value *{ty}) {{ value.{name}() }}")
            }
            (Form::Function, None, _) => format!("func zitProbe() {{ {name}() }}"),
            (Form::Record, None, Some(member)) => {
                format!("func zitProbe(value *{name}) {{ _ = value.{member} }}")
            }
            (Form::Interface, None, Some(member)) => {
                format!("func zitProbe(value {name}) {{ value.{member}() }}")
            }
            (Form::Value, None, _) => format!("func zitProbe() {{ _ = {name} }}"),
            (Form::Record | Form::Interface | Form::Alias, None, None) => {
                format!("func zitProbe(value {name}) {{}}")
            }
            _ => return None,
        })
    }

    fn typescript(&self, user: &Source) -> Option<String> {
        let Declaration { name, container, form, visibility, unit, .. } = *self.declaration;
        if unit.contains(['@', '#']) || name == "default" || container.is_none() && visibility < 2 {
            return None;
        }
        let path = self.source.path.path();
        let from = user.path.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        let up = if from.is_empty() { 0 } else { from.split('/').count() };
        let stem = path.rsplit_once('.')?.0;
        let up = if up == 0 { "./".to_owned() } else { "../".repeat(up) };
        let imported = container.unwrap_or(name);
        let import = format!("import {{ {imported} as ZitProbed }} from '{up}{stem}'");
        let typed = user.language != Language::JavaScript;
        Some(match (form, container, self.member) {
            (Form::Function, Some(_), _) if name == "constructor" => {
                format!("{import}\nfunction zitProbe() {{ new ZitProbed() }}")
            }
            (Form::Function, Some(_), _) if typed => {
                format!("{import}\nfunction zitProbe(value: ZitProbed) {{ value.{name}() }}")
            }
            (Form::Function, None, _) => format!("{import}\nfunction zitProbe() {{ ZitProbed() }}"),
            (Form::Record | Form::Interface, None, Some(member)) if typed => {
                format!("{import}\nfunction zitProbe(value: ZitProbed) {{ return value.{member} }}")
            }
            (Form::Variants, None, Some(member)) => {
                format!("{import}\nfunction zitProbe() {{ return ZitProbed.{member} }}")
            }
            (Form::Value, None, _) => {
                format!("{import}\nfunction zitProbe() {{ return ZitProbed }}")
            }
            (Form::Record | Form::Interface | Form::Alias, None, None) if typed => {
                format!("{import}\nfunction zitProbe(value: ZitProbed) {{}}")
            }
            _ => return None,
        })
    }
}
