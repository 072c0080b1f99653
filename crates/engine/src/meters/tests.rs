//! Metrics add up, object to what contradicts them, and are written as Prometheus reads them.

use proptest::prelude::*;

use super::*;

fn metered(name: &str, labels: &[(&str, &str)], reading: Reading) -> Metered {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Metered { node: None, name: name.to_owned(), help: "What it is".to_owned(), labels, reading }
}

fn kept(meters: &mut Meters) -> Meters {
    let mut again = Meters::default();
    for series in meters.take_touched() {
        let text = serde_json::to_string(&series).unwrap();
        again.restore(serde_json::from_str(&text).unwrap()).unwrap();
    }
    again
}

#[test]
fn readings_are_written_in_the_text_format() {
    let mut meters = Meters::default();
    meters.take(&metered("runs", &[("status", "Failed")], Reading::Count(1.0)));
    meters.take(&metered("runs", &[("status", "Failed")], Reading::Count(2.5)));
    meters.take(&metered("level", &[("say", "a\"b\\c\nd")], Reading::Set(7.0)));
    meters.take(&metered("level", &[("say", "a\"b\\c\nd")], Reading::Shift(-2.0)));
    for value in [1.0, 2.5, 99.0] {
        meters.take(&metered("size", &[], Reading::Observe { value, buckets: vec![1.0, 2.5] }));
    }
    let text = meters.render(&[]);
    assert_eq!(
        text,
        "# HELP argo_workflows_level What it is
# TYPE argo_workflows_level gauge
argo_workflows_level{say=\"a\\\"b\\\\c\\nd\"} 5
# HELP argo_workflows_runs What it is
# TYPE argo_workflows_runs counter
argo_workflows_runs{status=\"Failed\"} 3.5
# HELP argo_workflows_size What it is
# TYPE argo_workflows_size histogram
argo_workflows_size_bucket{le=\"1\"} 1
argo_workflows_size_bucket{le=\"2.5\"} 2
argo_workflows_size_bucket{le=\"+Inf\"} 3
argo_workflows_size_sum 102.5
argo_workflows_size_count 3
"
    );
    assert_eq!(kept(&mut meters).render(&[]), text);
    assert!(meters.take_touched().is_empty(), "what was handed out once is not handed out again");
}

#[test]
fn a_gauge_that_follows_stands_beside_those_that_were_set() {
    let mut meters = Meters::default();
    meters.take(&metered("level", &[("of", "a")], Reading::Set(1.0)));
    let live = |name: &str, of: &str, value: f64| Live {
        name: name.to_owned(),
        help: "What it is".to_owned(),
        labels: vec![("of".to_owned(), of.to_owned())],
        value,
    };
    let text = meters.render(&[live("level", "a", 2.0), live("level", "b", 3.0), live("other", "c", 4.0)]);
    assert!(!text.contains("level{of=\"a\"} 1\n"), "{text}");
    for line in
        ["level{of=\"a\"} 2\n", "level{of=\"b\"} 3\n", "# TYPE argo_workflows_other gauge\n", "other{of=\"c\"} 4\n"]
    {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
    assert_eq!(text.matches("# TYPE argo_workflows_level ").count(), 1);
    let odd = Live { help: "Something else".to_owned(), ..live("level", "z", 9.0) };
    assert!(!meters.render(&[odd]).contains("\"z\""));
}

#[test]
fn a_reading_that_contradicts_its_metric_is_told_and_changes_nothing() {
    let mut meters = Meters::default();
    meters.take(&metered("m", &[("a", "1")], Reading::Count(1.0)));
    let before = meters.clone();
    let other_help = Metered { help: "Else".to_owned(), ..metered("m", &[("a", "1")], Reading::Count(1.0)) };
    for (odd, why) in [
        (metered("m", &[("a", "1")], Reading::Set(1.0)), "Found existing counter for custom metric m of type gauge"),
        (other_help, "Help for metric m is already set to What it is, it cannot be changed"),
        (metered("m", &[("b", "1")], Reading::Count(1.0)), "metric m has the labels a already, it cannot have b"),
        (metered("m", &[], Reading::Count(1.0)), "metric m has the labels a already, it cannot have none"),
    ] {
        assert_eq!(meters.objection(&odd).as_deref(), Some(why));
        meters.take(&odd);
    }
    assert_eq!(meters, before);
    meters.take(&metered("h", &[], Reading::Observe { value: 1.0, buckets: vec![1.0] }));
    let odd = metered("h", &[], Reading::Observe { value: 1.0, buckets: vec![2.0] });
    assert_eq!(meters.objection(&odd).as_deref(), Some("the buckets of metric h are set, they cannot be changed"));
    let part = metered("h_count", &[], Reading::Set(1.0));
    assert_eq!(meters.objection(&part).as_deref(), Some("its name clashes with that of metric h"));
    meters.take(&metered("x_sum", &[], Reading::Set(1.0)));
    let whole = metered("x", &[], Reading::Observe { value: 1.0, buckets: vec![2.0] });
    assert_eq!(meters.objection(&whole).as_deref(), Some("its name clashes with that of metric x_sum"));
}

#[test]
fn a_label_with_a_new_value_every_time_does_not_grow_without_end() {
    let mut meters = Meters::default();
    for number in 0..MAX_SERIES {
        meters.take(&metered("m", &[("run", &number.to_string())], Reading::Count(1.0)));
    }
    let more = metered("m", &[("run", "one more")], Reading::Count(1.0));
    assert!(meters.objection(&more).unwrap().contains("combinations of labels"));
    assert_eq!(meters.objection(&metered("m", &[("run", "0")], Reading::Count(1.0))), None);
}

#[test]
fn sums_stay_numbers_that_can_be_written_down() {
    let mut meters = Meters::default();
    for _ in 0..3 {
        meters.take(&metered("m", &[], Reading::Count(f64::MAX)));
    }
    assert_eq!(kept(&mut meters).render(&[]), meters.render(&[]));
}

fn reading() -> impl Strategy<Value = Metered> {
    (0..3_usize, 0..3_usize, 0..1_000_u32).prop_map(|(kind, label, value)| {
        let value = f64::from(value) / 8.0;
        let (name, reading) = match kind {
            0 => ("counts", Reading::Count(value)),
            1 => ("levels", Reading::Shift(value - 60.0)),
            _ => ("sizes", Reading::Observe { value, buckets: vec![10.0, 50.0, 100.0] }),
        };
        metered(name, &[("l", ["a", "b", "c"][label])], reading)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Kept after every reading, thrown away and taken back at any moment: nothing is lost, nothing counts twice, and
    /// no counter ever goes down.
    #[test]
    fn metrics_that_are_kept_and_taken_back_are_those_that_lived(
        readings in prop::collection::vec((reading(), any::<bool>()), 0..60)
    ) {
        let mut lived = Meters::default();
        let mut kept: BTreeMap<(String, SeriesLabels), Series> = BTreeMap::new();
        let mut current = Meters::default();
        let mut highest: BTreeMap<SeriesLabels, f64> = BTreeMap::new();
        for (metered, dies) in readings {
            lived.take(&metered);
            current.take(&metered);
            for series in current.take_touched() {
                kept.insert((series.name.clone(), series.labels.clone()), series);
            }
            if dies {
                current = Meters::default();
                for series in kept.values() {
                    current.restore(series.clone()).unwrap();
                }
            }
            if let (Reading::Count(_), Some(Series { amount: Amount::Number(now), labels, .. })) =
                (&metered.reading, current.series("counts", metered.labels.clone()))
            {
                let before = highest.insert(labels, now).unwrap_or(0.0);
                prop_assert!(now >= before);
            }
        }
        prop_assert_eq!(current.render(&[]), lived.render(&[]));
    }
}
