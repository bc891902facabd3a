#![expect(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;

fn finding(at: usize, seed: (u8, u8, u8, u8, u8)) -> Finding {
    let (source, kind, place, status, level) = seed;
    let status = STATUSES[usize::from(status) % STATUSES.len()];
    let acceptable = matches!(status, Status::Drifted | Status::Unknown);
    Finding {
        id: format!("{at:08x}"),
        ticket: format!("{at:08x}-1"),
        canonical_id: format!("thing-{at}"),
        resource_type: ["A::B", "C::D", "a::b"][usize::from(kind) % 3].into(),
        place: ["aws/1/eu", "aws/1", "aws/12/eu", "k8s/p/aws/1"][usize::from(place) % 4].into(),
        source: ["one", "two"][usize::from(source) % 2].into(),
        status,
        kind: (status == Status::InSync && level % 2 == 0).then_some(DriftKind::Resolved),
        severity: acceptable.then(|| Severity::ALL[usize::from(level) % 5]),
        severity_reason: None,
        first_seen: (level % 3 > 0).then(|| jiff::Timestamp::from_second(i64::from(level)).unwrap()),
        changes: Vec::new(),
        change_count: 0,
        excused_count: 0,
        reason: (level % 7 == 0).then(|| "Throttled in EU".into()),
    }
}

fn findings() -> impl Strategy<Value = Vec<Finding>> {
    prop::collection::vec(any::<(u8, u8, u8, u8, u8)>(), 0..120)
        .prop_map(|seeds| seeds.into_iter().enumerate().map(|(at, seed)| finding(at, seed)).collect())
}

fn queries() -> impl Strategy<Value = DriftQuery> {
    let some = |words: &'static [&'static str]| prop::collection::vec(prop::sample::select(words), 0..2);
    (
        (some(&["one", "two", "three"]), some(&["A::B", "a::b"])),
        prop::option::of(prop::sample::select(vec!["aws/1", "aws/1/", "aws", "k8s"])),
        prop::collection::vec(prop::sample::select(STATUSES.to_vec()), 0..3),
        prop::collection::vec(prop::sample::select(Severity::ALL.to_vec()), 0..3),
        prop::option::of(prop::sample::select(vec!["thing-1", "EU", "a::B", "ä&=%+ x"])),
        prop::sample::select(Sort::ALL.to_vec()),
        any::<bool>(),
        1..20_usize,
    )
        .prop_map(|((source, kind), place, mut status, mut severity, text, sort, descending, limit)| {
            status.dedup();
            severity.dedup();
            DriftQuery {
                source: source.into_iter().map(ToOwned::to_owned).collect(),
                kind: kind.into_iter().map(ToOwned::to_owned).collect(),
                place: place.map(ToOwned::to_owned),
                status,
                severity,
                text: text.map(ToOwned::to_owned),
                sort,
                descending,
                cursor: Cursor::Start,
                limit,
            }
        })
}

/// The filter as one would write it without thinking of speed.
fn naive(query: &DriftQuery, finding: &Finding) -> bool {
    let status = if query.status.is_empty() {
        !(finding.status == Status::InSync && finding.kind.is_none())
    } else {
        query.status.contains(&finding.status)
    };
    let place = match &query.place {
        None => true,
        Some(place) => {
            let wanted: Vec<&str> = place.split('/').filter(|part| !part.is_empty()).collect();
            let parts: Vec<&str> = finding.place.split('/').collect();
            parts.len() >= wanted.len() && parts[..wanted.len()] == wanted[..]
        }
    };
    let text = match &query.text {
        None => true,
        Some(text) => {
            let reason = finding.reason.clone().unwrap_or_default();
            let all = [&finding.canonical_id, &finding.resource_type, &finding.place, &finding.source, &reason];
            all.iter().any(|field| field.to_lowercase().contains(&text.to_lowercase()))
        }
    };
    let one_of = |wanted: &[String], is: &str| wanted.is_empty() || wanted.iter().any(|one| one == is);
    status
        && place
        && text
        && one_of(&query.source, &finding.source)
        && one_of(&query.kind, &finding.resource_type)
        && (query.severity.is_empty() || query.severity.iter().any(|level| Some(*level) == finding.severity))
}

fn ids(rows: &[&Finding]) -> Vec<String> {
    rows.iter().map(|row| row.id.clone()).collect()
}

proptest! {
    #[test]
    fn parts_put_together_are_the_whole_in_either_direction(findings in findings(), query in queries()) {
        let facets = Arc::new(Facets::of(&findings));
        let whole = ids(&DriftQuery { limit: MOST_LIMIT, ..query.clone() }.apply(&findings, facets.clone()).rows);
        let mut forward = Vec::new();
        let mut next = Some(query);
        let mut last = None;
        while let Some(asked) = next {
            // Every link goes through its text.
            let asked = DriftQuery::parse(&asked.to_query_string()).unwrap();
            let sheet = asked.apply(&findings, facets.clone());
            prop_assert_eq!(sheet.total, whole.len());
            prop_assert_eq!(sheet.first, if whole.is_empty() { 0 } else { forward.len() + 1 });
            prop_assert!(sheet.rows.len() <= asked.limit);
            forward.extend(ids(&sheet.rows));
            next = sheet.next;
            last = Some(asked);
        }
        prop_assert_eq!(&forward, &whole);
        let mut backward = Vec::new();
        let mut asked = last;
        while let Some(query) = asked {
            let query = DriftQuery::parse(&query.to_query_string()).unwrap();
            let sheet = query.apply(&findings, facets.clone());
            let mut rows = ids(&sheet.rows);
            rows.append(&mut backward);
            backward = rows;
            asked = sheet.previous;
        }
        prop_assert_eq!(backward, whole);
    }

    #[test]
    fn a_filter_keeps_what_the_naive_one_keeps(findings in findings(), query in queries()) {
        let expected: Vec<&Finding> = findings.iter().filter(|finding| naive(&query, finding)).collect();
        let query = DriftQuery { limit: MOST_LIMIT, ..query };
        let mut found = query.apply(&findings, Arc::default()).rows;
        found.sort_by(|a, b| a.id.cmp(&b.id));
        prop_assert_eq!(ids(&found), ids(&expected));
    }

    #[test]
    fn an_address_is_read_as_it_was_written(query in queries()) {
        let mut query = query;
        query.source.dedup();
        query.kind.dedup();
        prop_assert_eq!(DriftQuery::parse(&query.to_query_string()).unwrap(), query);
    }

    #[test]
    fn any_query_is_read_or_refused(raw in ".{0,200}") {
        let _ = DriftQuery::parse(&raw);
    }

    #[test]
    fn rows_that_come_or_go_elsewhere_do_not_move_a_cursor(findings in findings(), query in queries(), gone in any::<prop::sample::Index>()) {
        let query = DriftQuery { sort: Sort::Id, descending: false, ..query };
        let first = query.apply(&findings, Arc::default());
        let Some(next) = first.next else { return Ok(()) };
        let expected = next.apply(&findings, Arc::default());
        let last = first.rows.last().unwrap().id.clone();
        let before: Vec<&Finding> = first.rows.iter().copied().filter(|row| row.id != last).collect();
        if before.is_empty() {
            return Ok(());
        }
        let gone = before[gone.index(before.len())].id.clone();
        let fewer: Vec<Finding> = findings.iter().filter(|row| row.id != gone).cloned().collect();
        let found = next.apply(&fewer, Arc::default());
        prop_assert_eq!(ids(&found.rows), ids(&expected.rows));
    }
}

#[test]
fn the_worst_comes_first_and_what_has_no_severity_last() {
    let findings: Vec<Finding> = [(0, 4), (1, 0), (2, 1), (3, 1), (0, 0)]
        .iter()
        .enumerate()
        .map(|(at, (status, level))| finding(at, (0, 0, 0, *status, *level)))
        .collect();
    let rows = DriftQuery::default().apply(&findings, Arc::default()).rows;
    assert_eq!(ids(&rows), ["00000001", "00000004", "00000000", "00000002"]);
}

#[test]
fn a_column_asked_for_twice_turns_round() {
    let query = DriftQuery::default();
    assert!(!query.sorted_by(Sort::Severity).descending);
    assert!(query.sorted_by(Sort::Since).descending);
    let by_id = query.sorted_by(Sort::Id);
    assert!(!by_id.descending && by_id.sorted_by(Sort::Id).descending);
    assert_eq!(query.to_query_string(), "");
}

#[test]
fn what_cannot_be_meant_is_refused_with_a_word_why() {
    for (raw, word) in [
        ("colour=red", "no parameter `colour`"),
        ("status=great", "one of drifted"),
        ("limit=0", "from 1 to 500"),
        ("limit=501", "from 1 to 500"),
        ("after=x.1", "cannot be read"),
        ("after=ab.-1", "cannot be read"),
        ("after=ab.1&before=ab.1", "exclude each other"),
        ("q=a&q=b", "given twice"),
        ("sort=size", "one of severity"),
    ] {
        let problem = DriftQuery::parse(raw).unwrap_err();
        assert!(problem.detail.contains(word) && problem.status == 400, "{raw}: {problem:?}");
    }
    // A form sends its empty fields, too.
    assert_eq!(DriftQuery::parse("q=&source=&status=&after=").unwrap(), DriftQuery::default());
}

#[test]
fn before_the_first_row_is_the_first_page_and_not_an_empty_one() {
    let all: Vec<Finding> = (0..5).map(|at| finding(at, (0, 0, 0, 0, 0))).collect();
    let query = DriftQuery { limit: 2, ..DriftQuery::default() };
    let first = query.apply(&all, Arc::new(Facets::of(&all))).rows[0].id.clone();
    for cursor in [Cursor::Before { id: first, place: 2 }, Cursor::Before { id: "gone".into(), place: 0 }] {
        let sheet = DriftQuery { cursor, ..query.clone() }.apply(&all, Arc::new(Facets::of(&all)));
        assert_eq!((sheet.rows.len(), sheet.first, sheet.previous.is_none()), (2, 1, true));
    }
}
