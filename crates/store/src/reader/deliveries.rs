//! Reads deliveries to life hooks.

use octoflow_model::Time;
use rusqlite::{Row, ToSql};

use super::Reader;
use crate::{
    Delivery, DeliveryCount, DeliveryFilter, Error,
    error::Doing,
    rows::{delivery::DeliveryStatus, row::unsigned},
};

const COLUMNS: &str = "event, plugin, run, job, namespace, sequence, state, body, created, due, tries, status, reason";

impl Reader {
    /// Returns the deliveries of a plugin that may be sent, at most so many, and those first that are due first.
    pub fn next_deliveries(&self, plugin: &str, limit: usize) -> Result<Vec<Delivery>, Error> {
        self.conn
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM deliveries WHERE plugin = ?1 AND status = 1 ORDER BY due, id LIMIT ?2"
            ))
            .and_then(|mut find| find.query_map((plugin, limit as i64), read)?.collect())
            .doing("read deliveries")
    }

    /// Returns the delivery of an event.
    pub fn delivery(&self, event: &str) -> Result<Option<Delivery>, Error> {
        let found: Result<Vec<Delivery>, _> = self
            .conn
            .prepare_cached(&format!("SELECT {COLUMNS} FROM deliveries WHERE event = ?1"))
            .and_then(|mut find| find.query_map([event], read)?.collect());
        Ok(found.doing("read a delivery")?.into_iter().next())
    }

    /// Returns a page of deliveries, oldest first, and the cursor of the next page if there is one.
    pub fn deliveries(
        &self,
        filter: &DeliveryFilter,
        after: u64,
        limit: usize,
    ) -> Result<(Vec<Delivery>, Option<u64>), Error> {
        let mut sql = format!("SELECT {COLUMNS}, id FROM deliveries WHERE id > ?");
        let (after, limit) = (after as i64, limit as i64);
        let mut values: Vec<&dyn ToSql> = vec![&after];
        let columns = [("plugin", &filter.plugin), ("job", &filter.job), ("run", &filter.run)];
        for (column, value) in columns {
            if let Some(value) = value {
                sql.push_str(&format!(" AND {column} = ?"));
                values.push(value);
            }
        }
        match filter.dead {
            Some(true) => sql.push_str(" AND status = 2"),
            Some(false) => sql.push_str(" AND status < 2"),
            None => {}
        }
        sql.push_str(" ORDER BY id LIMIT ?");
        values.push(&limit);
        let found: Vec<(Delivery, i64)> = self
            .conn
            .prepare_cached(&sql)
            .and_then(|mut find| find.query_map(values.as_slice(), |row| Ok((read(row)?, row.get(13)?)))?.collect())
            .doing("list deliveries")?;
        let next = found.last().filter(|_| found.len() as i64 == limit).map(|(_, id)| unsigned(*id));
        Ok((found.into_iter().map(|(delivery, _)| delivery).collect(), next))
    }

    /// Returns the numbers of deliveries by plugin.
    pub fn delivery_counts(&self) -> Result<Vec<DeliveryCount>, Error> {
        self.conn
            .prepare_cached("SELECT plugin, sum(status < 2), sum(status = 2) FROM deliveries GROUP BY plugin")
            .and_then(|mut find| {
                find.query_map([], |row| {
                    let (pending, dead) = (unsigned(row.get(1)?), unsigned(row.get(2)?));
                    Ok(DeliveryCount { plugin: row.get(0)?, pending, dead })
                })?
                .collect()
            })
            .doing("count deliveries")
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        event: row.get(0)?,
        plugin: row.get(1)?,
        run: row.get(2)?,
        job: row.get(3)?,
        namespace: row.get(4)?,
        sequence: row.get(5)?,
        state: row.get(6)?,
        body: row.get(7)?,
        created: Time(row.get(8)?),
        due: Time(row.get(9)?),
        tries: row.get(10)?,
        status: DeliveryStatus::of(row.get(11)?),
        reason: row.get(12)?,
    })
}
