//! Passes over actions that wait, as a table, and by a model that is written otherwise.

use everlog_schedules::overlap::{OverlapDecision, OverlapInput, OverlapPass, OverlapPolicy, WaitingAction};
use expect_test::expect;

/// A pass over policies by their letters: s skip, o buffer one, a buffer all, c cancel, t terminate, x allow all; a capital
/// letter is one of a trigger or a backfill.
fn pass(letters: &str, input: OverlapInput) -> String {
    let waiting: Vec<WaitingAction> = letters.chars().map(waiting).collect();
    let pass = OverlapPass::of(&waiting, input);
    let decision = |decision: &OverlapDecision| match decision {
        OverlapDecision::Start => '!',
        OverlapDecision::Keep => '.',
        OverlapDecision::Skip => '-',
        OverlapDecision::Drop => '0',
    };
    let decisions: String = pass.decisions.iter().map(decision).collect();
    match (pass.end_running, pass.takes_place) {
        (None, _nothing_waits) => decisions,
        (Some(end), None) => format!("{decisions} {end:?}"),
        (Some(end), Some((newest, first))) => format!("{decisions} {end:?}, {newest} at {first}"),
    }
}

fn waiting(letter: char) -> WaitingAction {
    let policy = match letter.to_ascii_lowercase() {
        's' => OverlapPolicy::Skip,
        'o' => OverlapPolicy::BufferOne,
        'a' => OverlapPolicy::BufferAll,
        'c' => OverlapPolicy::CancelOther,
        't' => OverlapPolicy::TerminateOther,
        _allow => OverlapPolicy::AllowAll,
    };
    WaitingAction { policy, is_manual: letter.is_ascii_uppercase(), is_delayed: false }
}

const IDLE: OverlapInput = OverlapInput { is_running: false, scheduled_max: None, starts_max: 50 };
const BUSY: OverlapInput = OverlapInput { is_running: true, ..IDLE };

#[test]
fn each_policy_decides_by_what_runs_and_what_was_chosen() {
    let table = [
        "s", "ss", "oo", "ooo", "aaa", "cc", "tt", "ct", "sc", "sac", "xx", "sxs", "cx", "oa", "ao", "oc",
        "co", "acatac",
    ];
    let mut shown = format!("{:7}{:12}{}\n", "", "idle", "busy");
    for letters in table {
        shown.push_str(&format!("{letters:7}{:12}{}\n", pass(letters, IDLE), pass(letters, BUSY)));
    }
    expect![[r#"
               idle        busy
        s      !           -
        ss     !-          --
        oo     !.          .-
        ooo    !.-         .--
        aaa    !..         ...
        cc     -!          -. Cancel, 1 at 0
        tt     -!          -. Terminate, 1 at 0
        ct     -!          -. Terminate, 1 at 0
        sc     -!          -. Cancel
        sac    -.!         -.. Cancel
        xx     !!          !!
        sxs    !!-         -!-
        cx     !!          .. Cancel
        oa     !.          ..
        ao     !.          .-
        oc     -!          .. Cancel
        co     !.          .- Cancel
        acatac --.-.!      .-.-.. Terminate, 5 at 1
    "#]]
    .assert_eq(&shown);
}

#[test]
fn what_may_not_start_is_dropped_when_its_turn_comes() {
    let paused = |is_running| OverlapInput { is_running, scheduled_max: Some(0), starts_max: 50 };
    let two_left = OverlapInput { scheduled_max: Some(2), ..IDLE };
    let mut shown = String::new();
    for letters in ["s", "ss", "sS", "Ss", "aaA", "cC", "Cc", "xXx", "axx"] {
        let columns = [paused(false), paused(true), two_left].map(|input| pass(letters, input));
        shown.push_str(&format!("{letters:6}{:12}{:20}{}\n", columns[0], columns[1], columns[2]));
    }
    expect![[r#"
        s     0           -                   !
        ss    00          --                  !-
        sS    0!          --                  !-
        Ss    !-          --                  !-
        aaA   00!         ...                 !..
        cC    0!          -. Cancel, 1 at 0   -!
        Cc    !0          -. Cancel, 1 at 0   -!
        xXx   0!0         0!0                 !!!
        axx   000         .00                 !!0
    "#]]
    .assert_eq(&shown);
}

#[test]
fn no_more_start_than_may() {
    let one = OverlapInput { starts_max: 1, ..IDLE };
    assert_eq!(pass("xxx", one), "!..");
    assert_eq!(pass("xsx", one), "!..");
    assert_eq!(pass("sc", one), "-!");
    assert_eq!(pass("s", OverlapInput { starts_max: 0, ..IDLE }), ".");
}

#[test]
fn a_start_that_is_put_off_holds_its_place() {
    let delayed = WaitingAction { is_delayed: true, ..waiting('s') };
    let decide = |waiting: &[WaitingAction], input| OverlapPass::of(waiting, input).decisions;
    use OverlapDecision::{Keep, Skip, Start};
    assert_eq!(decide(&[delayed, waiting('s'), waiting('a'), waiting('x')], IDLE), [Keep, Skip, Keep, Start]);
    assert_eq!(decide(&[delayed, waiting('c')], IDLE), [Keep, Keep]);
    assert_eq!(decide(&[delayed], BUSY), [Keep]);
}
