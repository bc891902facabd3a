//! A small account by hand, in which every text from outside can be replaced by something that means harm.

use std::sync::Arc;

use driftline_core::{DriftKind, Severity, Status};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::context::{AcceptForm, Asked, Context, Problem, View};
use crate::drift_query::{DriftQuery, Facets};
use crate::model::{
    Act, Baseline, Beginning, Between, Blame, Change, Claim, Edge, Event, Excused, Finding, Gap, Moment, Neighbour,
    Node, Posture, PostureMoment, PostureRule, Resource, Rule, Snapshot, Source, SourceVersions, Step, Summary,
    Topology, TypeVelocity, Version, Violation,
};

/// As the program draws it.
const DRAWN: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\" role=\"img\" aria-label=\"graph\">\
    <g class=\"node added\"><rect width=\"5\" height=\"5\"></rect></g></svg>";

/// Says every text from outside: as it usually is, or as somebody who means harm would have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample<'a>(pub Option<&'a str>);

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().expect("a time of our own")
}

pub(crate) fn context(view: View, url: &str) -> Context<'_> {
    Context {
        view,
        now: at("2026-06-29T12:00:00Z"),
        revision: "r7",
        program: "driftline 0.1.0",
        may_write: true,
        why_not_write: None,
        csrf: "c0ffee",
        signed_in: true,
        who: Some("mara"),
        url,
        notice: None,
        warning: None,
        style: "/assets/style.css",
        script: "/assets/script.js",
        icon: "/assets/icon.svg",
    }
}

impl Sample<'_> {
    fn text(self, usual: &str) -> String {
        self.0.unwrap_or(usual).to_owned()
    }

    fn change(self, path: &str, baseline: Option<Value>, current: Option<Value>) -> Change {
        let op = match (&baseline, &current) {
            (None, _) => "add",
            (_, None) => "remove",
            _ => "replace",
        };
        Change { path: self.text(path), op, baseline, current, severity: Some(Severity::High) }
    }

    fn changes(self) -> Vec<Change> {
        vec![
            self.change("/ingressRuleCount", Some(json!(0)), Some(json!(1))),
            self.change("/description", Some(json!(self.text("internal"))), None),
            self.change("/password", Some(json!("(sealed)")), Some(json!("(sealed)"))),
        ]
    }

    fn finding(self, number: usize, status: Status, kind: Option<DriftKind>, severity: Option<Severity>) -> Finding {
        let usual = format!("arn:aws:ec2:us-east-1:123456789012:security-group/sg-{number:017x}");
        let drifted = kind == Some(DriftKind::Modified);
        Finding {
            id: format!("f{number}"),
            ticket: format!("f{number}-4"),
            canonical_id: self.text(&usual),
            resource_type: self.text("AWS::EC2::SecurityGroup"),
            place: self.text("aws/123456789012/us-east-1"),
            source: self.text("adopt/prod"),
            status,
            kind,
            severity,
            severity_reason: severity.map(|_| self.text("a security group opens to the world")),
            first_seen: Some(at("2026-06-29T09:00:00Z")),
            changes: if drifted { self.changes() } else { Vec::new() },
            change_count: if drifted { 5 } else { 0 },
            excused_count: usize::from(drifted),
            reason: (status == Status::NotChecked)
                .then(|| self.text("the live listing was partial: the observer stopped at its page limit")),
        }
    }

    pub(crate) fn findings(self, many: usize) -> Vec<Finding> {
        let kinds = [
            (Status::Drifted, Some(DriftKind::Modified), Some(Severity::High)),
            (Status::Drifted, Some(DriftKind::Deleted), Some(Severity::Critical)),
            (Status::Unknown, None, Some(Severity::Low)),
            (Status::NotChecked, None, None),
            (Status::InSync, Some(DriftKind::Resolved), None),
        ];
        let of = |number: usize| {
            let (status, kind, severity) = kinds[number % kinds.len()];
            self.finding(number, status, kind, severity)
        };
        (0..many).map(of).collect()
    }

    fn summary() -> Summary {
        Summary {
            total: 1_870,
            in_sync: 1_761,
            drifted: 3,
            unknown: 2,
            not_checked: 104,
            resolved: 1,
            excused: 1_383,
            critical: 1,
            high: 1,
            medium: 1,
            low: 2,
            info: 0,
            complete_extents: 40,
            partial_extents: 4,
        }
    }

    pub(crate) fn snapshot(self, findings: usize) -> Snapshot {
        let moment = |day: u32, drifted: u64, unknown: u64| Moment {
            at: at(&format!("2026-06-{day:02}T09:00:00Z")),
            total: 1_870,
            drifted,
            unknown,
            not_checked: 104,
        };
        Snapshot {
            revision: "r7".to_owned(),
            computed_at: at("2026-06-29T12:00:00Z"),
            baseline: Some(Baseline { name: self.text("main"), set_at: at("2026-06-20T09:00:00Z"), accepted: 2 }),
            summary: Self::summary(),
            sources: vec![self.source(false), self.source(true)],
            gaps: vec![Gap {
                source: self.text("inventory/prod@scan"),
                place: self.text("aws/123456789012/eu-west-1"),
                reason: self.text("the observer stopped at its page limit (truncated)"),
                types: [(self.text("AWS::KMS::Key"), 104)].into(),
            }],
            velocity: vec![self.velocity(0.04, None), self.velocity(0.9, Some("changes in nearly every pass"))],
            course: vec![moment(20, 0, 0), moment(24, 5, 1), moment(29, 3, 2)],
            findings: self.findings(findings),
            left_out: 12,
            rules: vec![
                self.rule(true, 0, true),
                self.rule(true, 0, false),
                self.rule(false, 1_383, false),
                self.rule(false, 0, false),
            ],
            beginning: None,
            unfinished: false,
        }
    }

    fn source(self, stale: bool) -> Source {
        Source {
            name: self.text("adopt/prod"),
            version: 4,
            baseline_version: Some(3),
            taken_at: at("2026-06-29T11:30:00Z"),
            stale,
            resources: 935,
            in_sync: 880,
            drifted: 2,
            unknown: 1,
            not_checked: 52,
            complete_extents: 20,
            partial_extents: 2,
            problems: vec![self.text("DescribeVolumes was throttled")],
        }
    }

    fn velocity(self, drift_rate: f64, noisy: Option<&str>) -> TypeVelocity {
        TypeVelocity {
            resource_type: self.text("AWS::EC2::SecurityGroup"),
            drifted: 2,
            checked: 47,
            drift_rate,
            unknown: 0,
            not_checked: 0,
            last24h: 2,
            last7d: 3,
            last30d: 9,
            noisy: noisy.map(|noisy| self.text(noisy)),
        }
    }

    fn rule(self, own: bool, uses: u64, expired: bool) -> Rule {
        Rule {
            name: self.text("evaluated-at"),
            kind: self.text("volatile"),
            subject: self.text("AWS::Config::*, /evaluatedAt"),
            origin: self.text("built-in"),
            reason: self.text("the time of the evaluation, not of a change"),
            owner: own.then(|| self.text("platform")),
            expires: own.then(|| self.text("2026-07-01")),
            expired,
            uses,
            own,
        }
    }

    pub(crate) fn beginning(self) -> Beginning {
        Beginning {
            headline: self.text("There is no baseline yet"),
            text: self.text("Without one nothing can be called drift."),
            steps: vec![Step {
                say: self.text("Take what is there now as expected:"),
                command: self.text("driftline baseline set"),
            }],
            only_baseline: true,
        }
    }

    pub(crate) fn resource(self) -> Resource {
        let properties = |count: u32| {
            let rules: Vec<Value> = (0..30).map(|at| json!({"port": at, "cidr": self.text("10.0.0.0/8")})).collect();
            let (name, text) = (self.text("description"), self.text("internal"));
            json!({"ingressRuleCount": count, name: text, "rules": rules, "vpc": null})
        };
        let view = |number: usize, status, kind| crate::model::View {
            finding_id: format!("f{number}"),
            ticket: format!("f{number}-4"),
            resource_type: self.text("AWS::EC2::SecurityGroup"),
            place: self.text("aws/123456789012/us-east-1"),
            source: self.text("adopt/prod"),
            status,
            kind,
            severity: Some(Severity::High),
            severity_reason: Some(self.text("its ingress changed")),
            baseline_version: Some(3),
            version: 4,
            taken_at: at("2026-06-29T11:30:00Z"),
            first_seen: Some(at("2026-06-29T09:00:00Z")),
            extent: self.text("listed whole"),
            reason: Some(self.text("modified since the baseline")),
            changes: self.changes(),
            excused: vec![Excused {
                change: self.change("/seenAt", Some(json!(self.text("monday"))), Some(json!(self.text("friday")))),
                rule: self.text("volatile"),
                origin: self.text("built-in"),
                reason: self.text("says when, not what"),
            }],
            expected: Some(properties(0)),
            live: Some(properties(1)),
        };
        let neighbour = |direction, state| Neighbour {
            canonical_id: self.text("arn:aws:ec2:us-east-1:123456789012:vpc/vpc-1"),
            resource_type: Some(self.text("AWS::EC2::VPC")),
            direction,
            relation: self.text("vpcId"),
            state,
        };
        Resource {
            canonical_id: self.text("arn:aws:ec2:us-east-1:123456789012:security-group/sg-9ea657e9cecc70fb3"),
            views: vec![
                view(1, Status::Drifted, Some(DriftKind::Modified)),
                view(2, Status::Unknown, None),
                view(3, Status::NotChecked, None),
            ],
            claims: vec![
                Claim {
                    source: self.text("terraform/network"),
                    role: "manages",
                    as_what: Some(self.text("aws_security_group.db")),
                },
                Claim { source: self.text("adopt/prod"), role: "saw", as_what: None },
            ],
            life: vec![Event {
                at: at("2026-06-29T09:00:00Z"),
                source: self.text("adopt/prod"),
                version: 4,
                what: self.text("changed"),
                changes: self.changes(),
                excused_count: 2,
            }],
            neighbours: vec![neighbour("to", "same"), neighbour("from", "added")],
            neighbours_left_out: 3,
            neighbours_note: Some(self.text("the graph is larger than what is kept of it")),
            life_left_out: 5,
            blame: Some(Blame {
                from: Some(at("2026-06-28T09:00:00Z")),
                to: Some(at("2026-06-29T09:00:00Z")),
                acts: vec![Act {
                    at: at("2026-06-29T08:41:00Z"),
                    who: self.text("arn:aws:iam::123456789012:user/kim"),
                    what: self.text("AuthorizeSecurityGroupIngress"),
                    how: Some(self.text("console")),
                    address: Some(self.text("192.0.2.7")),
                    certainty: self.text("likely"),
                    why: self.text("it names the group"),
                    event_id: Some(self.text("e-1")),
                }],
                note: Some(self.text("eu-west-1 keeps no trail")),
            }),
        }
    }

    pub(crate) fn topology(self) -> Topology {
        let node = |name: &str, state| Node {
            canonical_id: self.text(name),
            resource_type: self.text("AWS::SQS::Queue"),
            state,
            in_degree: 1,
            out_degree: 0,
        };
        let edge =
            |state| Edge { from: self.text("rule"), to: self.text("queue"), relation: self.text("targets"), state };
        Topology {
            from: self.text("baseline main"),
            to: self.text("now"),
            nodes: vec![node("a", "added"), node("b", "same"), node("c", "not_checked")],
            edges: vec![edge("same"), edge("removed"), edge("changed")],
            moments: vec![at("2026-06-20T09:00:00Z"), at("2026-06-29T09:00:00Z")],
            left_out: 3,
            svg: Some(DRAWN.to_owned()),
            note: Some(self.text("3 more nodes not drawn")),
        }
    }

    pub(crate) fn posture(self) -> Posture {
        let violation = |turn: &str| Violation {
            rule: self.text("s3-bucket-public-read-prohibited"),
            canonical_id: self.text("arn:aws:s3:::logs"),
            source: self.text("config/prod"),
            turn: turn.to_owned(),
            since: Some(at("2026-06-29T09:00:00Z")),
        };
        Posture {
            against: self.text("baseline main"),
            rules: vec![PostureRule {
                rule: self.text("s3-bucket-public-read-prohibited"),
                compliant: 40,
                non_compliant: 2,
                newly_non_compliant: 1,
                resolved: 1,
                not_checked: 3,
            }],
            violations: ["lasting", "new", "resolved", "not_checked"].map(violation).into(),
            left_out: 0,
            course: vec![
                PostureMoment { at: at("2026-06-20T09:00:00Z"), non_compliant: 1 },
                PostureMoment { at: at("2026-06-29T09:00:00Z"), non_compliant: 2 },
            ],
        }
    }

    pub(crate) fn versions(self) -> Vec<SourceVersions> {
        let version = |number| Version {
            number,
            taken_at: at(&format!("2026-06-2{number}T09:00:00Z")),
            resources: 935,
            added: 2,
            changed: 3,
            removed: 1,
            complete_extents: 20,
            partial_extents: 2,
            pinned_by: vec![self.text("main")],
        };
        vec![SourceVersions { source: self.text("adopt/prod"), versions: vec![version(4), version(3)], left_out: 2 }]
    }

    pub(crate) fn between(self) -> Between {
        Between {
            from: self.text("2026-06-20T09:00:00Z"),
            to: self.text("now"),
            summary: Self::summary(),
            findings: self.findings(5),
            left_out: 0,
        }
    }

    pub(crate) fn asked(self) -> Asked {
        Asked { from: Some(self.text("2026-06-20")), to: Some(self.text("24h")) }
    }

    /// A question in which everything that can be typed was.
    pub(crate) fn query(self) -> DriftQuery {
        let mut query = DriftQuery::parse("status=drifted&sort=id&limit=20").expect("a question of our own");
        query.text = Some(self.text("sg-"));
        query.source = vec![self.text("adopt/prod")];
        query.place = Some(self.text("aws"));
        query
    }

    /// Every page there is, by name.
    pub(crate) fn pages(self) -> Vec<(&'static str, String)> {
        let snapshot = self.snapshot(10);
        let begun =
            Snapshot { baseline: None, beginning: Some(self.beginning()), unfinished: true, ..snapshot.clone() };
        let between = self.between();
        let facets = Arc::new(Facets::of(&snapshot.findings));
        let (all, narrow) = (DriftQuery::default(), self.query());
        let sheet = |query: &DriftQuery| query.apply(&snapshot.findings, Arc::clone(&facets));
        let problem = Problem::new(409, "Not accepted", self.text("the store is locked")).hint(self.text("try again"));
        let form = AcceptForm {
            findings: vec![self.text("f1-4")],
            reason: self.text("planned"),
            by: self.text("mara"),
            back: self.text("/drift"),
        };
        let told = |view, url: &'static str| context(view, url);
        let notice = self.text("2 findings accepted");
        let noticed = Context {
            notice: Some(&notice),
            warning: Some(&notice),
            who: Some(&notice),
            ..told(View::Drift, "/drift")
        };
        let barred = Context { may_write: false, why_not_write: Some(&notice), ..told(View::Drift, "/drift") };
        vec![
            ("overview", super::overview(&told(View::Overview, "/"), &snapshot)),
            ("overview, begun", super::overview(&told(View::Overview, "/"), &begun)),
            ("drift", super::drift(&noticed, &snapshot, &all, &sheet(&all))),
            ("drift, narrowed", super::drift(&told(View::Drift, "/drift"), &snapshot, &narrow, &sheet(&narrow))),
            ("drift, barred", super::drift(&barred, &snapshot, &all, &sheet(&all))),
            ("resource", super::resource(&told(View::Resource, "/resource?id=x"), &self.resource())),
            ("topology", super::topology(&told(View::Topology, "/topology"), &self.topology(), &self.asked())),
            ("posture", super::posture(&told(View::Posture, "/posture"), &self.posture())),
            ("versions", super::versions(&told(View::Versions, "/versions"), &self.versions())),
            (
                "compare",
                super::compare(
                    &told(View::Compare, "/compare"),
                    &self.asked(),
                    &between,
                    &all,
                    &all.apply(&between.findings, Arc::clone(&facets)),
                ),
            ),
            ("rules", super::rules(&told(View::Rules, "/rules"), &snapshot)),
            ("beginning", super::beginning(&told(View::Other, "/"), &self.beginning())),
            (
                "sign in",
                super::sign_in(
                    &Context { signed_in: false, ..told(View::Other, "/sign-in") },
                    Some(&notice),
                    &self.text("/drift"),
                ),
            ),
            ("problem", super::problem(&told(View::Other, "/nowhere"), &problem)),
            ("accept again", super::accept_again(&told(View::Other, "/accept"), &problem, &form)),
        ]
    }
}
