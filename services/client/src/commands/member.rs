//! `cairn member`: who there is in the team.

use cairn_wire::members::{MemberItem, MemberPatch, MemberWrite};

use super::{Client, all_items, say};
use crate::api::{self, percent_encode};
use crate::cli::Member;
use crate::exit::Failure;

/// Runs what is asked.
pub fn member(client: &Client, what: Member) -> Result<(), Failure> {
    let api = client.api_anywhere()?;
    match what {
        Member::List => {
            let members: Vec<MemberItem> = api::block_on(all_items(&api, "/v1/members"))?;
            for member in members {
                say(&line(&member));
            }
        }
        Member::Add {
            handle,
            role,
            email,
        } => {
            let write = MemberWrite {
                handle,
                email,
                role: Some(role),
            };
            let body = serde_json::to_vec(&write).expect("texts serialise");
            let added: MemberItem = api::block_on(api.json(api.post("/v1/members", body)))?;
            say(&line(&added));
        }
        Member::Role { handle, role } => {
            let patch = MemberPatch {
                role: Some(role),
                email: None,
            };
            let body = serde_json::to_vec(&patch).expect("texts serialise");
            let changed = api.patch(&address(&handle), body);
            let changed: MemberItem = api::block_on(api.json(changed))?;
            say(&line(&changed));
        }
        Member::Remove { handle } => {
            api::block_on(api.done(api.delete(&address(&handle))))?;
            say(&format!("{handle} is removed; all their keys have ended."));
        }
    }
    Ok(())
}

fn address(handle: &str) -> String {
    format!("/v1/members/{}", percent_encode(handle).replace('/', "%2F"))
}

fn line(member: &MemberItem) -> String {
    let email = member.email.as_deref().unwrap_or("-");
    let joined = cairn_wire::time::text(member.joined_at);
    format!("{}  {}  {email}  {joined}", member.handle, member.role)
}
