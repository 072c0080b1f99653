//! Lists by page and their numbers.

use serde_json::{Value, json};

use crate::stage::{Stage, submission};

#[test]
fn pl_41_lists_are_sliced_filtered_and_ordered_and_counts_are_equal() {
    let stage = Stage::new();
    let mut ids = Vec::new();
    for at in 0..25 {
        // Nobody translates it, so it fails at once; every fifth waits in a gate.
        let mut body = submission(&json!({"kind": if at % 2 == 0 { "Even" } else { "Odd" }}), json!({}));
        body["userID"] = json!(["u1", "u2", "u3"][at % 3]);
        body["jobName"] = json!(format!("{}-{at}", if at < 10 { "early" } else { "late" }));
        body["cluster"] = json!(if at == 7 { "c7" } else { "" });
        let told = stage.ask("POST", "/job", &body);
        ids.push(told.payload["jobID"].as_str().unwrap().to_owned());
    }
    for id in &ids {
        stage.until(id, "failed");
    }
    let list = |query: &str| -> Vec<Value> {
        let told = stage.get(&format!("/job/list?{query}"));
        assert_eq!(told.code, crate::stage::DONE, "{query}: {}", told.msg);
        told.payload.as_array().unwrap().clone()
    };
    let names =
        |query: &str| list(query).iter().map(|job| job["jobID"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let count = |query: &str| stage.get(&format!("/job/count?{query}")).payload["count"].as_u64().unwrap();
    let of = |users: &[usize]| -> Vec<String> {
        ids.iter().enumerate().filter(|(at, _)| users.contains(&(at % 3))).map(|(_, id)| id.clone()).collect()
    };
    let both = of(&[0, 1]);
    let filter = "userID=u1,u2&state=failed,succeeded";
    assert_eq!(names(&format!("{filter}&order=asc&pageSize=10&pageNumber=2")), both[10..].to_vec());
    assert_eq!(count(filter), both.len() as u64);
    let newest: Vec<String> = ids.iter().rev().cloned().collect();
    assert_eq!(names("pageSize=20&pageNumber=1"), newest[..20], "newest first unless asked otherwise");
    assert_eq!(names("pageSize=20&pageNumber=2&order=DESC"), newest[20..]);
    assert_eq!(names("pageSize=20&pageNumber=3"), [""; 0]);
    assert_eq!((count(""), count("state=succeeded"), count("kind=Odd")), (25, 0, 12));
    assert_eq!((count("name=early"), count("name=early-1"), count("cluster=c7")), (10, 1, 1));
    assert_eq!(names("name=late-24&pageSize=10&pageNumber=1"), [ids[24].clone()]);
    let first = &list("order=asc&pageSize=10&pageNumber=1")[0];
    assert_eq!(
        (&first["userID"], &first["jobKind"], &first["state"]),
        (&json!("u1"), &json!("Even"), &json!("failed"))
    );
    assert!(first["finishedAt"].as_str().unwrap().starts_with("20"), "{first}");
    assert_eq!(
        (count("startAt=4000000000"), count("endAt=4000000000"), count("startAt=1&endAt=4000000000")),
        (0, 25, 25)
    );
}
