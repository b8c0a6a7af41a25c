//! Markdown: each heading's section, up to the next heading of any level, is a unit named by the heading's text.
//!
//! A heading whose text occurs twice in either version is named with the heading it stands under, `Parent / Text`,
//! so that a section inserted above does not rename the ones below. Text before the first heading is code
//! outside symbols. Sections mention nothing.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use zit_model::resource::Part;

use crate::{
    plan::one_line,
    unit::{Fragment, Order, Repeat, Units, assemble},
};

/// The units of both versions, named alike.
pub(super) fn units(old: &str, new: &str) -> (Units, Units) {
    let (old_sections, new_sections) = (sections(old), sections(new));
    let mut repeated = BTreeSet::new();
    for version in [&old_sections, &new_sections] {
        let mut seen = BTreeSet::new();
        for section in version {
            if !seen.insert(section.heading.as_str()) {
                repeated.insert(section.heading.clone());
            }
        }
    }
    let named = |sections| assemble(fragments(sections, &repeated), Order::Counts);
    (named(old_sections), named(new_sections))
}

struct Section<'s> {
    /// The heading's text on one line; empty before the first heading.
    heading: String,
    /// The text of the next higher heading above it.
    parent: Option<String>,
    lines: (u32, u32),
    text: &'s str,
}

/// Cuts a file at its headings.
fn sections(source: &str) -> Vec<Section<'_>> {
    let mut sections = Vec::new();
    let mut open: BTreeMap<HeadingLevel, String> = BTreeMap::new();
    let mut lines = LineCount { source, at: 0, line: 1 };
    let (mut heading, mut parent, mut start) = (String::new(), None, 0);
    let mut cut = |heading: String, parent, start: usize, end: usize| {
        let text = source.get(start..end).unwrap_or_default();
        let first = lines.of(start);
        let last = lines.of(start + text.trim_end().len());
        sections.push(Section { heading, parent, lines: (first, last), text });
    };
    for (at, level, text) in headings(source) {
        cut(std::mem::take(&mut heading), parent.take(), start, at);
        parent = open.range(..level).next_back().map(|(_, text)| text.clone());
        open.retain(|above, _| *above < level);
        open.insert(level, text.clone());
        (heading, start) = (text, at);
    }
    cut(heading, parent, start, source.len());
    sections
}

/// The headings that stand in no list, quotation or other block: offset, level and text.
fn headings(source: &str) -> Vec<(usize, HeadingLevel, String)> {
    let options = Options::ENABLE_YAML_STYLE_METADATA_BLOCKS | Options::ENABLE_TABLES;
    let mut headings = Vec::new();
    let mut depth = 0_usize;
    let mut current: Option<(usize, HeadingLevel, String)> = None;
    for (event, range) in Parser::new_ext(source, options).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if let (0, Tag::Heading { level, .. }) = (depth, tag) {
                    current = Some((range.start, level, String::new()));
                }
                depth += 1;
            }
            Event::End(tag) => {
                depth = depth.saturating_sub(1);
                if matches!(tag, TagEnd::Heading(_)) && depth == 0 {
                    headings.extend(
                        current.take().map(|(at, level, text)| (at, level, one_line(&text))),
                    );
                }
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some((_, _, heading)) = &mut current {
                    heading.push_str(&text);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some((_, _, heading)) = &mut current {
                    heading.push(' ');
                }
            }
            Event::InlineMath(_)
            | Event::DisplayMath(_)
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::FootnoteReference(_)
            | Event::Rule
            | Event::TaskListMarker(_) => {}
        }
    }
    headings
}

fn fragments<'s>(sections: Vec<Section<'s>>, repeated: &BTreeSet<String>) -> Vec<Fragment<'s>> {
    let fragment = |section: Section<'s>| {
        let part = match (section.heading.as_str(), section.parent) {
            ("", _) => Part::Module,
            (text, Some(parent)) if repeated.contains(text) => {
                Part::Unit(short(&format!("{parent} / {text}")))
            }
            (text, _) => Part::Unit(short(text)),
        };
        let mut fragment = Fragment::new(part, None, Repeat::Number);
        fragment.lines = Some(section.lines);
        fragment.body = tokens(section.text);
        fragment
    };
    sections.into_iter().map(fragment).collect()
}

fn short(name: &str) -> String {
    name.chars().take(200).collect()
}

/// The lines without trailing white space; several blank ones count as one, those at the ends and after a `#`
/// heading not at all.
fn tokens(text: &str) -> Vec<u8> {
    let mut tokens = Vec::with_capacity(text.len());
    let (mut blank, mut n_lines) = (false, 0_usize);
    for line in text.lines().map(str::trim_end) {
        if line.is_empty() {
            blank = !tokens.is_empty();
            continue;
        }
        let after_heading = n_lines == 1 && text.starts_with('#');
        if std::mem::take(&mut blank) && !after_heading {
            tokens.push(0);
        }
        n_lines += 1;
        tokens.extend(line.bytes().chain([0]));
    }
    tokens
}

/// Counts lines forward, so that a file is read once.
struct LineCount<'s> {
    source: &'s str,
    at: usize,
    line: u32,
}

impl LineCount<'_> {
    /// The line, from one, that `offset` lies in; offsets must not decrease by more than a section.
    fn of(&mut self, offset: usize) -> u32 {
        if offset < self.at {
            (self.at, self.line) = (0, 1);
        }
        let passed = self.source.get(self.at..offset).unwrap_or_default();
        let breaks = passed.matches('\n').count();
        self.line = self.line.saturating_add(u32::try_from(breaks).unwrap_or(u32::MAX));
        self.at = offset;
        self.line
    }
}
