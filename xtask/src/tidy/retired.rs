//! Retired words: private words that a standard term has replaced. `docs/glossary.md` has the words in use. The retired
//! ones are assembled from pieces so that this file does not match itself.

use super::Problem;
use super::source::{File, has_word};

struct Retired {
    word: &'static str,
    instead: &'static str,
}

const RETIRED: &[Retired] = &[
    Retired { word: concat!("Hou", "se"), instead: "Controller" },
    Retired { word: concat!("hou", "se"), instead: "controller" },
    Retired { word: concat!("Do", "or"), instead: "Backpressure, Endpoint or entry point" },
    Retired { word: concat!("Gue", "st"), instead: "Permit" },
    Retired { word: concat!("Glan", "ces"), instead: "RenderedCache" },
    Retired { word: concat!("where", "abouts"), instead: "remote location" },
    Retired { word: concat!("spokes", "man"), instead: "main container of a set" },
    Retired { word: concat!("memor", "ize"), instead: "memoize" },
    Retired { word: concat!("Pod", "ded"), instead: "PodNode" },
    Retired { word: concat!("She", "lf"), instead: "ReaderPool, ObjectSource or Collection" },
    Retired { word: concat!("she", "lf"), instead: "pool, source or collection" },
    Retired { word: concat!("Cle", "rk"), instead: "ResourceWorker" },
    Retired { word: concat!("cle", "rk"), instead: "resource worker" },
    Retired { word: concat!("Stew", "ard"), instead: "MaintenanceThread" },
    Retired { word: concat!("stew", "ard"), instead: "maintenance" },
    Retired { word: concat!("De", "sk"), instead: "Handle" },
    Retired { word: concat!("de", "sk"), instead: "handle" },
    Retired { word: concat!("Pu", "mp"), instead: "Driver" },
    Retired { word: concat!("pu", "mp"), instead: "driver or event loop" },
    Retired { word: concat!("Bra", "ke"), instead: "RateLimiter" },
    Retired { word: concat!("Surround", "ings"), instead: "Catalog" },
    Retired { word: concat!("Aga", "inOptions"), instead: "RerunOptions" },
    Retired { word: concat!("Err", "and"), instead: "WorkItem" },
    Retired { word: concat!("Time", "keeper"), instead: "CronScheduler" },
    Retired { word: concat!("time", "keeper"), instead: "cron scheduler" },
    Retired { word: concat!("Doo", "med"), instead: "QueuedDeletion" },
    Retired { word: concat!("Mis", "sion"), instead: "LocatedDeletion" },
    Retired { word: concat!("Sie", "ve"), instead: "LineFilter" },
    Retired { word: concat!("Bri", "nger"), instead: "Fetcher" },
    Retired { word: concat!("Rul", "ings"), instead: "AdmissionCache" },
    Retired { word: concat!("Wis", "hes"), instead: "Overrides or SubmitOptions" },
    Retired { word: concat!("dwel", "lers"), instead: "namespaced_kinds" },
    Retired { word: concat!("Bea", "con"), instead: "ServerFile" },
    Retired { word: concat!("bea", "con"), instead: "server file" },
    Retired { word: concat!("she", "lve"), instead: "store" },
    Retired { word: concat!("Hin", "drances"), instead: "ConditionReporter" },
    Retired { word: concat!("Happe", "ning"), instead: "LoopEvent" },
    Retired { word: concat!("born", "_wrong"), instead: "add_errored" },
    Retired { word: concat!("Ea", "rs"), instead: "Observers" },
    Retired { word: concat!("Fu", "se"), instead: "PanicGuard" },
    Retired { word: concat!("Pul", "se"), instead: "BusyTimer" },
    Retired { word: concat!("Foot", "ing"), instead: "BatchIsolation" },
    Retired { word: concat!("Carri", "er"), instead: "ArtifactClient" },
    Retired { word: concat!("Par", "cel"), instead: "ArtifactFile or QueuedMessage" },
    Retired { word: concat!("Lo", "an"), instead: "Download" },
    Retired { word: concat!("Sa", "ck"), instead: "ArchiveWriter" },
    Retired { word: concat!("Unplan", "ned"), instead: "PlanError" },
    Retired { word: concat!("Hindr", "ance"), instead: "Condition" },
    Retired { word: concat!("Garb", "led"), instead: "Malformed" },
    Retired { word: concat!("Last", "Words"), instead: "TerminationMessage" },
    Retired { word: concat!("Phase", "Stand"), instead: "PhaseClass" },
    Retired { word: concat!("Task", "Life"), instead: "TaskEvent" },
    Retired { word: concat!("Circum", "stances"), instead: "CronState" },
    Retired { word: concat!("Pay", "er"), instead: "BudgetScope" },
    Retired { word: concat!("took_place", "_of"), instead: "replaced_runs" },
    Retired { word: concat!("Rec", "ipe"), instead: "CompiledTemplate" },
    Retired { word: concat!("Bir", "th"), instead: "NewNode" },
    Retired { word: concat!("F", "an"), instead: "Expansion" },
    Retired { word: concat!("tell", "_parent"), instead: "notify_parent" },
    Retired { word: concat!("take", "_up"), instead: "restore_run" },
    Retired { word: concat!("take_", "up_all"), instead: "restore_all" },
    Retired { word: concat!("rec", "ipe"), instead: "compiled template" },
    Retired { word: concat!("LONGEST", "_BODY"), instead: "MAX_BODY" },
    Retired { word: concat!("LONGEST", "_NAME"), instead: "MAX_NAME_LENGTH" },
    Retired { word: concat!("Out", "look"), instead: "WorkflowPlan" },
    Retired { word: concat!("De", "ed"), instead: "ScriptedAction, UserRequest or Action" },
    Retired { word: concat!("Sce", "ne"), instead: "Scenario" },
    Retired { word: concat!("Cre", "w"), instead: "ContainerSchedule" },
    Retired { word: concat!("Wi", "sh"), instead: "RunRequest or Options" },
    Retired { word: concat!("Sp", "ot"), instead: "CallPosition or Located" },
    Retired { word: concat!("Unt", "old"), instead: "UndeliveredFacts" },
    Retired { word: concat!("lie", "_down"), instead: "daemon_settled" },
    Retired { word: concat!("hee", "d"), instead: "enter_notes" },
    Retired { word: concat!("let", "_go"), instead: "drop_undurable" },
    Retired { word: concat!("sit", "_out"), instead: "wait_out" },
    Retired { word: concat!("turn", "_away"), instead: "refuse_in_outage" },
    Retired { word: concat!("doo", "m"), instead: "queue_deletions" },
];

/// Constants that mean a maximum are called `MAX_…`.
const RETIRED_PREFIX: &str = concat!("MO", "ST_");

const WHY: &str = "one concept, one word, and the one that the trade uses; `docs/glossary.md` has them";

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        for (index, line) in file.text.lines().enumerate() {
            for retired in RETIRED.iter().filter(|retired| has_word(line, retired.word)) {
                let what = format!("`{}` is retired; say {}", retired.word, retired.instead);
                problems.push(Problem::new(&file.path, index + 1, what, WHY));
            }
            let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            if let Some(word) = words.find(|word| word.starts_with(RETIRED_PREFIX)) {
                let what = format!("`{word}` means a maximum; say MAX_{}", &word[RETIRED_PREFIX.len()..]);
                problems.push(Problem::new(&file.path, index + 1, what, WHY));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_retired_word_is_found_in_code_and_in_comments() {
        for retired in RETIRED {
            for text in [format!("// A {} it is.\n", retired.word), format!("let x: {};\n", retired.word)] {
                assert_eq!(check(&[File::new("crates/a/src/b.rs", &text)]).len(), 1, "{text}");
            }
        }
    }

    #[test]
    fn a_maximum_is_called_one() {
        let text = format!("const {RETIRED_PREFIX}ROWS: u32 = 7;\nconst AL{RETIRED_PREFIX}ALL: u32 = 7;\n");
        let problems = check(&[File::new("crates/a/src/b.rs", &text)]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].what.ends_with("say MAX_ROWS"), "{problems:?}");
    }

    #[test]
    fn words_that_only_contain_one_are_fine() {
        let text = "// Warehouse, greenhouse, desktop, pumpkin, handled.\n";
        assert!(check(&[File::new("crates/a/src/b.rs", text)]).is_empty());
    }
}
