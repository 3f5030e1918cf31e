//! `cairn project`: which project a folder is and why, and the team's projects.

use std::fs;
use std::path::Path;

use cairn_wire::projects::{ProjectItem, ProjectPatch, ProjectResolve};

use super::{Client, all_items, say};
use crate::api::{self, Api};
use crate::cli::{Project, ProjectCommand};
use crate::exit::Failure;
use crate::project;

/// Runs what is asked; without more words it shows this folder's project.
pub fn project(client: &Client, what: Project) -> Result<(), Failure> {
    match (what.name, what.command) {
        (Some(name), _) => name_here(client, &name),
        (None, None) => show(client),
        (None, Some(command)) => manage(&client.api_anywhere()?, command),
    }
}

/// Shows the key, and the rule that found it. The service need not be there.
fn show(client: &Client) -> Result<(), Failure> {
    let project = client.named_project()?;
    let rule = match project.name.key.split_once(':') {
        Some(("name", _)) => "the file .cairn-project",
        Some(("git", _)) => "the address of remote origin",
        Some(("repo", _)) => "the first commit of the repository",
        _ => "the folder on this machine",
    };
    let name = project.name.name.as_deref();
    say(&format!(
        "Key:  {}\nName: {}\nRule: {rule}\nRoot: {}",
        project.name.key,
        name.unwrap_or(&project.name.key),
        project.checkout()
    ));
    Ok(())
}

/// Writes the file that names this folder's project, at the root of its checkout.
fn name_here(client: &Client, name: &str) -> Result<(), Failure> {
    let Some(line) = project::file_line(name) else {
        let wanted = format!(
            "--name has 1 to {} characters on one line",
            project::NAME_CHARS
        );
        return Err(Failure::Usage(wanted));
    };
    let path = client.project.root.join(project::FILE);
    write(&path, &format!("{line}\n")).map_err(Failure::writing(&path))?;
    show(&Client::here()?)
}

/// A link is no file of this folder's: reading one is refused, so writing one is too.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink());
    if is_link {
        return Err(std::io::Error::other("it is a link"));
    }
    fs::write(path, text)
}

fn manage(api: &Api, what: ProjectCommand) -> Result<(), Failure> {
    let changed = match what {
        ProjectCommand::List => {
            let projects: Vec<ProjectItem> = api::block_on(all_items(api, "/v1/projects"))?;
            for project in &projects {
                say(&line(project));
            }
            return Ok(());
        }
        ProjectCommand::Rename { project, name } => change(
            api,
            project,
            &ProjectPatch {
                name: Some(name),
                merge_into: None,
            },
        ),
        ProjectCommand::Merge { project, into } => change(
            api,
            project,
            &ProjectPatch {
                name: None,
                merge_into: Some(into),
            },
        ),
    };
    say(&line(&changed?));
    Ok(())
}

fn change(api: &Api, project: String, patch: &ProjectPatch) -> Result<ProjectItem, Failure> {
    let asked = ProjectResolve {
        key: None,
        name: Some(project),
    };
    let asked = serde_json::to_vec(&asked).expect("texts serialise");
    let patch = serde_json::to_vec(patch).expect("texts serialise");
    api::block_on(async {
        let found = api.post("/v1/projects/resolve", asked);
        let found: ProjectItem = api.json(found).await?;
        let address = format!("/v1/projects/{}", found.id);
        api.json(api.patch(&address, patch)).await
    })
}

fn line(project: &ProjectItem) -> String {
    let aliases = project.aliases.iter().map(|key| format!("  = {key}"));
    let into = project.merged_into.iter().map(|key| format!("  -> {key}"));
    format!(
        "{}  {}  {}{}",
        project.id,
        project.key,
        project.name,
        aliases.chain(into).collect::<String>()
    )
}
