//! `octoflow cron preview FILE|NAME`: the next times of schedules, in their own zone and in UTC, with clock changes. It
//! reads a file, or an object of the server or the data directory; nothing is changed.

use std::path::PathBuf;

use anyhow::Result;
use octoflow_engine::kinds::Kind;
use octoflow_model::Time;
use octoflow_store::Reader;
use serde_json::{Value, json};

use super::KIND;
use crate::{
    cli::Preview,
    commands::{Context, stored::find},
    exit::{Exit, Failure},
    load,
    local::explained,
    output::{clock, colour::Paint, table::Table},
};

pub(crate) fn preview(args: &Preview, context: &Context) -> Result<Exit> {
    let from = args.from.unwrap_or_else(clock::now);
    let path = PathBuf::from(&args.what);
    let objects: Vec<(&Kind, Value)> = if args.what == "-" || path.exists() {
        match load::load(&[path])? {
            Ok(loaded) => {
                let read = loaded.into_iter().map(|one| (one.known(), one.value));
                read.filter_map(|(kind, object)| Some((kind.filter(|kind| kind.schedule.is_some())?, object))).collect()
            }
            Err(problems) => {
                context.output.talk(problems.render(context.output.talk_paint().is_on()).trim_end());
                return Ok(Exit::InvalidManifest);
            }
        }
    } else {
        vec![(KIND, kept(args, context)?)]
    };
    if objects.is_empty() {
        return Err(Failure::new(Exit::InvalidManifest, format!("there is no schedule in `{}`", args.what)).into());
    }
    let mut exit = Exit::Succeeded;
    for (at, (kind, object)) in objects.iter().enumerate() {
        if at > 0 {
            context.output.line("")?;
        }
        match listed(kind, object, from, args.count.into(), context.output.paint()) {
            Ok(text) => context.output.text(&text)?,
            Err(wrong) => {
                for why in wrong {
                    context.output.error(&Failure::new(Exit::InvalidManifest, why).into());
                }
                exit = Exit::InvalidManifest;
            }
        }
    }
    Ok(exit)
}

/// Finds the schedule of this name on the server, or in the data directory.
fn kept(args: &Preview, context: &Context) -> Result<Value> {
    let namespace = args.namespace.or_default();
    if let Some(client) = context.named_server()? {
        return find(&client, KIND, namespace, &args.what);
    }
    let found = match Reader::open(&context.data_dir) {
        Ok(reader) => reader.object(KIND.key, namespace, &args.what).map_err(explained)?,
        Err(octoflow_store::Error::Missing { .. }) => None,
        Err(error) => return Err(explained(error)),
    };
    let Some(object) = found else {
        let text = format!("there is no file and no {} `{}` in namespace `{namespace}`", KIND.name, args.what);
        return Err(Failure::not_found(text).into());
    };
    Ok(serde_json::from_slice(&object.body)?)
}

/// Lists the next times of one schedule, or returns all its problems.
fn listed(kind: &Kind, object: &Value, from: Time, count: usize, paint: Paint) -> Result<String, Vec<String>> {
    let mut object = object.clone();
    if object["metadata"].is_object() && object["metadata"]["creationTimestamp"].is_null() {
        // Limits relative to the creation start now.
        object["metadata"]["creationTimestamp"] = json!(from.to_string());
    }
    let row = kind.schedule.ok_or_else(|| vec![format!("a {} has no schedule", kind.name)])?;
    let timetable = (row.timetable)(&object)?;
    let several = timetable.schedules.len() > 1;
    let name = if timetable.name.is_empty() { "(no name)" } else { &timetable.name };
    let state = if timetable.suspended { ", suspended" } else { "" };
    let mut text = format!("{name} in namespace {}{state}\n", timetable.namespace);
    let mut titles = vec!["LOCAL", "ZONE", "UTC"];
    titles.extend(several.then_some("SCHEDULE"));
    titles.push("NOTE");
    let mut table = Table::new(&titles);
    let mut at = from;
    for _ in 0..count {
        let Some(next) = timetable.next_after(at) else { break };
        for schedule in timetable.schedules.iter().filter(|schedule| schedule.latest(next) == Some(next)) {
            let local = next.timestamp().to_zoned(schedule.zone().clone());
            let note = schedule.note(next, schedule.latest(Time(next.0 - 1_000_000))).unwrap_or_default();
            let mut row = vec![
                local.strftime("%a %Y-%m-%d %H:%M:%S %:z").to_string(),
                schedule.zone().iana_name().unwrap_or("UTC").to_owned(),
                next.to_string(),
            ];
            row.extend(several.then(|| schedule.text().to_owned()));
            row.push(note);
            table.push(row.into_iter().map(Into::into).collect());
        }
        at = next;
    }
    text.push_str(&table.render(paint));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cron(spec: Value) -> Value {
        json!({"metadata": {"name": "c"}, "spec": spec})
    }

    fn told(spec: Value, from: &str, count: usize) -> String {
        listed(KIND, &cron(spec), Time::parse(from).unwrap(), count, Paint::OFF).unwrap()
    }

    #[test]
    fn times_are_shown_in_their_zone_and_in_utc_and_clock_changes_are_told() {
        let spec = json!({"schedules": ["30 2 * * *"], "timezone": "Europe/Zurich"});
        assert_eq!(
            told(spec, "2026-03-28T12:00:00Z", 2),
            "c in namespace default
LOCAL                           ZONE           UTC                   NOTE
Sun 2026-03-29 03:00:00 +02:00  Europe/Zurich  2026-03-29T01:00:00Z  its hour is skipped on this day, so it comes when the clocks have gone forward
Mon 2026-03-30 02:30:00 +02:00  Europe/Zurich  2026-03-30T00:30:00Z
"
        );
    }

    #[test]
    fn several_schedules_are_merged_and_intervals_begin_now() {
        let spec = json!({"schedules": ["0 * * * *", "@every 45m"], "suspend": true});
        assert_eq!(
            told(spec, "2026-05-01T10:00:00Z", 3),
            "c in namespace default, suspended
LOCAL                           ZONE  UTC                   SCHEDULE    NOTE
Fri 2026-05-01 10:45:00 +00:00  UTC   2026-05-01T10:45:00Z  @every 45m
Fri 2026-05-01 11:00:00 +00:00  UTC   2026-05-01T11:00:00Z  0 * * * *
Fri 2026-05-01 11:30:00 +00:00  UTC   2026-05-01T11:30:00Z  @every 45m
"
        );
    }

    #[test]
    fn everything_wrong_is_told() {
        let wrong = listed(KIND, &cron(json!({"schedules": ["x", "y"]})), Time(0), 1, Paint::OFF).unwrap_err();
        assert_eq!(wrong.len(), 2);
    }
}
