//! System calls that no policy lets a run make, by their numbers, and those that it may make on itself alone.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use policies::{Layer, State};

use crate::lab::{Caller, Lab, is_root, labs};

/// The policies that confine system calls.
const CONFINED: [&str; 4] = ["default", "strict", "network", "test"];

#[test]
fn raw_system_calls_are_refused() {
    if !has_perl() {
        return;
    }
    // What a call makes is removed again; each reaches only the caller itself.
    let table = [
        ("add_key", "my ($t,$d,$p)=('user','k','v'); syscall(248,$t,$d,$p,1,-4)"),
        ("keyctl", "syscall(250,0,-4,1)"),
        ("io_uring_setup", "my $p=\"\\0\"x120; syscall(425,1,$p)"),
        ("io_setup", "my $c=pack('Q',0); syscall(206,1,$c)"),
        // Neither takes a huge page: MAP_NORESERVE, and a file without bytes.
        ("mmap of huge pages", "syscall(9,0,2097152,0,0x44022,-1,0)"),
        ("memfd_create of huge pages", "my $n='x'; syscall(319,$n,5)"),
        ("shmget", "my $i=syscall(29,0,4096,0600); syscall(31,$i,0,0) if $i>=0; $i"),
        ("semget", "my $i=syscall(64,0,1,0600); syscall(66,$i,0,0) if $i>=0; $i"),
        ("msgget", "my $i=syscall(68,0,0600); syscall(71,$i,0,0) if $i>=0; $i"),
        ("mq_open", "my $n='policies'.$$; my $i=syscall(240,$n,0102,0600,0); syscall(241,$n) if $i>=0; $i"),
        ("pidfd_getfd", "my $p=syscall(434,$$,0); syscall(438,$p,0,0)"),
        ("process_vm_readv", "my $b='x'x8; my $v=pack('pQ',$b,8); syscall(310,$$,$v,1,$v,1,0)"),
        // PR_SET_MM with PR_SET_MM_MAP_SIZE, which only asks.
        ("prctl", "my $s=pack('L',0); syscall(157,35,15,$s,0,0)"),
        ("userfaultfd", "syscall(323,1)"),
    ];
    for lab in labs() {
        for (name, call) in table {
            let call = call.replace("$$", "0+$$");
            for policy in CONFINED {
                let (free, confined) = calls(&lab, policy, &call);
                if free != "OPEN" {
                    skips::skip(&format!("{name} is {free} on this host, also without a policy"));
                    break;
                }
                assert_eq!(confined, "EPERM", "{name} under {policy}");
            }
        }
    }
}

#[test]
fn nothing_is_typed_into_a_terminal_and_its_line_discipline_stays() {
    if !has_perl() {
        return;
    }
    // The end of its terminal is a SIGHUP, which would come before anything is printed.
    let terminal = "use POSIX; $SIG{HUP}='IGNORE'; open(my $m,'+<','/dev/ptmx') or die; my $z=pack('i',0); ioctl($m,0x40045431,$z); \
                    my $n=pack('i',0); ioctl($m,0x80045430,$n); POSIX::setsid(); \
                    open(my $s,'+<','/dev/pts/'.unpack('i',$n)) or die;";
    // The discipline is the one that it has already, which needs no privilege.
    let calls_on_it = [
        ("TIOCSTI", "my $c='x'; syscall(16,fileno($s),0x5412,$c)"),
        ("TIOCSETD", "my $d=pack('i',0); syscall(16,fileno($s),0x5423,$d)"),
    ];
    for lab in labs() {
        if lab.caller == Caller::User && !lab.has_view() {
            skips::skip(&format!("no terminals of its own for {:?}", lab.caller));
            continue;
        }
        for (name, call) in calls_on_it {
            let (free, confined) = calls(&lab, "default", &format!("{terminal} {call}"));
            if free != "OPEN" {
                skips::skip(&format!("{name} is {free} on this host, also without a policy"));
                continue;
            }
            assert_eq!(confined, "EPERM", "{name}");
        }
    }
}

/// Runs a raw system call, by its number on `x86_64`, through perl's `syscall()`: what the run and a free process get.
fn calls(lab: &Lab, policy: &str, call: &str) -> (String, String) {
    let script =
        format!("use Errno; my $r=do {{ {call} }}; print $r==-1 ? (grep {{ $!{{$_}} }} keys %!)[0] : 'OPEN'");
    let mut free = Command::new("/usr/bin/perl");
    if is_root() {
        free.uid(lab.uid).gid(lab.uid);
    }
    let free = free.args(["-e", &script]).current_dir(lab.path("ws")).output().unwrap();
    let confined = lab.run(policy, &lab.context(), "", &["/usr/bin/perl", "-e", &script]).1;
    (String::from_utf8_lossy(&free.stdout).into_owned(), confined)
}

fn has_perl() -> bool {
    let has = cfg!(target_arch = "x86_64") && Path::new("/usr/bin/perl").exists();
    if !has {
        skips::skip("needs perl on x86_64");
    }
    has
}

#[test]
fn a_run_changes_the_scheduling_and_the_limits_of_itself_alone() {
    if !has_perl() {
        return;
    }
    for lab in labs() {
        // setpriority, sched_setscheduler, sched_setaffinity, sched_setattr, ioprio_set, prlimit64.
        let call = |pid: &str| {
            [
                format!("syscall(141,0,{pid},19)"),
                format!("my $p=pack('i',0); syscall(144,{pid},3,$p)"),
                format!("my $m=pack('Q',1); syscall(203,{pid},8,$m)"),
                format!("my $a=pack('LLQiLQQQ',48,3,0,19,0,0,0,0); syscall(314,{pid},$a,0)"),
                format!("syscall(251,1,{pid},0x4007)"),
                format!("my $l=pack('QQ',0,0); syscall(302,{pid},4,$l,0)"),
            ]
        };
        for call in call(&lab.victim.id().to_string()) {
            assert_eq!(calls(&lab, "default", &call), ("OPEN".into(), "EPERM".into()), "{call}");
        }
        for own in ["0", "0+$$"] {
            for call in call(own) {
                assert_eq!(calls(&lab, "default", &call).1, "OPEN", "{call}");
            }
        }
        // All processes of the user, by setpriority and by ioprio_set.
        for call in ["syscall(141,2,$<,5)", "syscall(251,3,$<,0x4007)"] {
            assert_eq!(calls(&lab, "default", call).1, "EPERM", "{call}");
        }
    }
}

#[test]
fn no_set_user_id_file_is_left_in_a_workspace() {
    if !has_perl() {
        return;
    }
    for lab in labs() {
        // chmod, fchmodat, open, openat, openat with O_TMPFILE, mknod, creat; openat2 does not exist.
        let table = [
            ("my $f='mine'; syscall(90,$f,04755)", "EPERM"),
            ("my $f='mine'; syscall(90,$f,02755)", "EPERM"),
            ("my $f='mine'; syscall(268,-100,$f,04755)", "EPERM"),
            ("my $f='made1'; syscall(2,$f,0101,04755)", "EPERM"),
            ("my $f='made2'; syscall(257,-100,$f,0101,04755)", "EPERM"),
            ("my $f='.'; syscall(257,-100,$f,020200002,04755)", "EPERM"),
            ("my $f='made3'; syscall(133,$f,0104755,0)", "EPERM"),
            ("my $f='made4'; syscall(85,$f,04755)", "EPERM"),
            ("my $f='made5'; my $h=pack('QQQ',0101,04755,0); syscall(437,-100,$f,$h,24)", "ENOSYS"),
        ];
        for (call, error) in table {
            let (free, confined) = calls(&lab, "default", call);
            assert_eq!((free.as_str(), confined.as_str()), ("OPEN", error), "{call}");
        }
        for call in [
            "my $f='mine'; syscall(90,$f,0755)",
            "my $f='made6'; syscall(257,-100,$f,0101,0644)",
            "my $f='mine'; syscall(257,-100,$f,0,04755)",
            // A directory is opened, and nothing is made.
            "my $f='.'; syscall(257,-100,$f,0200000,04755)",
        ] {
            assert_eq!(calls(&lab, "default", call).1, "OPEN", "{call}");
        }
        let report = lab.run("default", &lab.context(), "", &["/bin/true"]).0;
        assert_eq!(report.state(Layer::SetIds), Some(State::Enforced), "{report}");
    }
}
