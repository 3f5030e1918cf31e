//! The text of `get_tool_uses`, to the character (contract 8): calls by id, a long input or output
//! in parts.

use super::tree::Tree;
use super::{Evidence, ToolUse, ToolUseName};
use crate::Rejection;
use crate::bounds::head_bytes;
use crate::ids::ToolUseId;
use crate::limits;
use crate::plain::one_line_within;
use crate::search::DATA_SENTENCE;

/// What a part that begins inside a line opens with: indented, it cannot pass for structure.
const INDENT: &str = "    ";
/// Bytes of a block in one part, with room for [`INDENT`].
const PIECE_BYTES: usize = limits::TOOL_USE_BLOCK_BYTES - INDENT.len();
/// Bytes of a call beside its heading and its blocks: two labels, the line that says how to get
/// the rest, line ends.
const FRAME_BYTES: usize = 120;

/// Tool uses asked for by id.
#[derive(Clone, Copy, Debug)]
pub struct ToolUses<'a> {
    /// Those that are shown, at most [`limits::TOOL_USES_SHOWN`], in the order asked for.
    pub shown: &'a [ToolUse],
    /// How many were found.
    pub found: usize,
    /// Names of which nothing was found that the caller may see.
    pub missing: &'a [ToolUseName],
}

/// The answer to a read by ids: at most [`limits::TOOL_USES_ANSWER_BYTES`]. Where the inputs and
/// outputs together are longer, the longest are shortened, all to the same length.
#[must_use]
pub fn render_tool_uses(uses: ToolUses<'_>) -> String {
    let calls: Vec<Call> = uses.shown.iter().map(Call::of).collect();
    let mut head = Vec::new();
    if !calls.is_empty() {
        head.push(DATA_SENTENCE.to_owned());
    }
    if uses.found > calls.len() {
        head.push(format!("Showing {} of {}.", calls.len(), uses.found));
    }
    let head = head.join("\n");
    let tail = not_found(uses.missing);
    let frames = calls.iter().map(|call| call.head.len() + FRAME_BYTES);
    let frame = head.len() + tail.len() + frames.sum::<usize>();
    let first = |block: &Block| block.pieces.first().map_or(0, String::len);
    let blocks = calls.iter().flat_map(|call| &call.blocks);
    let room = limits::TOOL_USES_ANSWER_BYTES.saturating_sub(frame);
    let most = equal_share(blocks.map(first).collect(), room);
    let calls = calls.iter().map(|call| call.render(most));
    let texts = std::iter::once(head).chain(calls).chain([tail]);
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    texts.join("\n\n")
}

/// One part of a call that does not fit one answer, counted from 1: the piece of that number of
/// its input and of its output. Part 1 is what [`render_tool_uses`] shows of the call alone.
///
/// # Errors
/// `invalid_input` if the call has fewer parts.
pub fn render_tool_use_part(tool_use: &ToolUse, part: u32) -> Result<String, Rejection> {
    let call = Call::of(tool_use);
    let count = call.parts();
    let index = usize::try_from(part).unwrap_or(usize::MAX).wrapping_sub(1);
    if index >= count {
        let allowed = format!("1 to {count}, the parts of {}", call.id);
        return Err(Rejection::invalid_input("part", &allowed));
    }
    let text = match index {
        0 => call.render(limits::TOOL_USE_BLOCK_BYTES),
        _ => call.render_part(index),
    };
    Ok(format!("{DATA_SENTENCE}\n\n{text}"))
}

/// The largest length to which texts are shortened so that all of them fit the room.
fn equal_share(mut lengths: Vec<usize>, mut room: usize) -> usize {
    lengths.sort_unstable();
    for (nth, length) in lengths.iter().enumerate() {
        let share = room / (lengths.len() - nth);
        if *length > share {
            return share;
        }
        room -= length;
    }
    usize::MAX
}

fn not_found(missing: &[ToolUseName]) -> String {
    if missing.is_empty() {
        return String::new();
    }
    let name = |name: &ToolUseName| one_line_within(&name.to_string(), limits::ROW_TITLE_BYTES);
    let names: Vec<String> = missing.iter().map(name).collect();
    format!("Not found: {}.", names.join(", "))
}

/// A call, its input and output laid out in pieces.
struct Call {
    id: ToolUseId,
    head: String,
    blocks: [Block; 2],
}

struct Block {
    label: &'static str,
    pieces: Vec<String>,
}

impl Call {
    fn of(tool_use: &ToolUse) -> Self {
        let own = &tool_use.call;
        let mut head = format!(
            "### [{}] {} · {} · {} UTC",
            tool_use.id,
            one_line_within(&own.tool, limits::ROW_TITLE_BYTES),
            one_line_within(&tool_use.session, limits::ROW_TITLE_BYTES),
            tool_use.at.format("%Y-%m-%d %H:%M")
        );
        if own.failed == Some(true) {
            head.push_str("\nFailed: yes");
        }
        Self {
            id: tool_use.id,
            head,
            blocks: [
                Block::of("Input", &own.input),
                Block::of("Output", &own.output),
            ],
        }
    }

    fn parts(&self) -> usize {
        let pieces = self.blocks.iter().map(|block| block.pieces.len());
        pieces.max().unwrap_or(0).max(1)
    }

    /// The call with at most so many bytes of each block.
    fn render(&self, most: usize) -> String {
        let mut text = self.head.clone();
        let mut is_first_cut = false;
        for block in &self.blocks {
            let Some(piece) = block.pieces.first() else {
                text.push_str(&format!("\n{}: nothing", block.label));
                continue;
            };
            let kept = &piece[..piece_end(piece, most)];
            is_first_cut |= kept.len() < piece.len();
            text.push_str(&format!("\n{}:\n{}", block.label, without_end(kept)));
        }
        if is_first_cut {
            text.push_str(&self.rest_line(1));
        } else if self.parts() > 1 {
            text.push_str(&self.rest_line(2));
        }
        text
    }

    /// One of the further parts.
    fn render_part(&self, index: usize) -> String {
        let mut text = format!("### [{}] part {} of {}", self.id, index + 1, self.parts());
        for block in &self.blocks {
            if let Some(piece) = block.pieces.get(index) {
                text.push_str(&format!("\n{}:\n", block.label));
                if !block.pieces[index - 1].ends_with('\n') {
                    text.push_str(INDENT);
                }
                text.push_str(without_end(piece));
            }
        }
        if index + 1 < self.parts() {
            text.push_str(&self.rest_line(index + 2));
        }
        text
    }

    /// How to get the rest: `part` is the first that holds some of it.
    fn rest_line(&self, part: usize) -> String {
        format!(
            "\n[cut; the rest: get_tool_uses(ids=[\"{}\"], part={part})]",
            self.id
        )
    }
}

impl Block {
    fn of(label: &'static str, side: &Evidence) -> Self {
        let tree = Tree::of(&side.text, side.is_cut());
        // What the tree left out begins a piece of its own: the first piece stays short.
        let mut pieces = pieces(&tree.shown);
        if !tree.left_out.is_empty() {
            if let Some(last) = pieces.last_mut() {
                last.push('\n');
            }
            pieces.extend(self::pieces(&tree.left_out));
        }
        Self { label, pieces }
    }
}

/// A text in pieces of at most [`PIECE_BYTES`] that together are all of it.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(piece_end(rest, PIECE_BYTES));
        pieces.push(piece.to_owned());
        rest = after;
    }
    pieces
}

/// A piece without the line end that it may hold at its end.
fn without_end(piece: &str) -> &str {
    piece.strip_suffix('\n').unwrap_or(piece)
}

/// Where a piece of at most so many bytes ends: behind a whole line, unless that is less than
/// half of what would fit.
fn piece_end(text: &str, most: usize) -> usize {
    if text.len() <= most {
        return text.len();
    }
    let head = head_bytes(text, most);
    match head.rfind('\n') {
        Some(at) if at >= most / 2 => at + 1,
        _ => head.len(),
    }
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
