/*
 * --sandbox: what a command can still do while it reads files that nobody
 * trusts, should one of them take control of it. Landlock limits reading to the
 * files named on the command line and a few of /proc and /sys. A seccomp filter
 * refuses network, processes, io_uring (whose requests no filter sees) and
 * everything that changes a file. Both last until the process ends.
 *
 * A kernel without either refuses the command: half a sandbox is none.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/cli.h"

#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* EXECUTE to MAKE_SYM: what the first version of Landlock can refuse. */
#define ALL ((UINT64_C(1) << 13) - 1)

static int fail_system(struct pen_err *err, const char *what)
{
	return pen__fail(err, P_UNSUPPORTED_SYSTEM, "--sandbox",
			 "the kernel does not support %s", what);
}

/* --- reading --- */

/* Allows reading a file, or everything in a folder; nothing if it does not
 * exist: to say so is the job of whoever opens it. */
static int allow(int rules, const char *path, struct pen_err *err)
{
	struct landlock_path_beneath_attr a = { .allowed_access = READS };
	struct stat sb;
	long rc;

	a.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (a.parent_fd < 0)
		return 0;
	if (fstat(a.parent_fd, &sb) || !S_ISDIR(sb.st_mode))
		a.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE;
	rc = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH,
		     &a, 0);
	if (rc)
		pen__fail_sys(err, errno, path, "cannot allow reading");
	close(a.parent_fd);
	return rc ? PEN_EIO : 0;
}

/* A data path, with the index files that formats look for next to a file. Of a
 * pattern, the folder in front of its first wildcard. */
static int allow_path(int rules, const char *path, struct pen_err *err)
{
	static const char *const beside[] = { "", ".fai", ".gzi" };
	const size_t plain = strcspn(path, "*?[");
	char text[PATH_MAX];
	int rc = 0;

	if (path[plain]) {
		size_t n = plain;

		while (n && path[n - 1] != '/')
			n--;
		snprintf(text, sizeof(text), "%.*s", n ? (int)n : 1,
			 n ? path : ".");
		return allow(rules, text, err);
	}
	for (size_t i = 0; !rc && i < sizeof(beside) / sizeof(*beside); i++) {
		const int n =
			snprintf(text, sizeof(text), "%s%s", path, beside[i]);

		if (n > 0 && (size_t)n < sizeof(text))
			rc = allow(rules, text, err);
	}
	return rc;
}

static int allow_args(int rules, int argc, char **argv, struct pen_err *err)
{
	/* how much memory and how many CPUs there are */
	static const char *const machine[] = { "/proc/meminfo", "/proc/self",
					       "/sys/fs/cgroup" };
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(machine) / sizeof(*machine); i++)
		rc = allow(rules, machine[i], err);
	for (int i = 0; !rc && i < argc; i++) {
		const char *value = strchr(argv[i], '=');

		/* the value of a setting may be a file: labels=y.npy */
		if (value)
			rc = allow(rules, value + 1, err);
		if (!rc && argv[i][0] != '-')
			rc = allow_path(rules, argv[i], err);
	}
	return rc;
}

static int limit_files(int argc, char **argv, struct pen_err *err)
{
	const struct landlock_ruleset_attr attr = { .handled_access_fs = ALL };
	int rules, rc;

	rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr),
			     0);
	if (rules < 0)
		return fail_system(err, "Landlock (Linux 5.13)");
	rc = allow_args(rules, argc, argv, err);
	if (!rc && syscall(SYS_landlock_restrict_self, rules, 0))
		rc = fail_system(err, "Landlock (Linux 5.13)");
	close(rules);
	return rc;
}

/* --- system calls --- */

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef ARCH
static const uint16_t refused[] = {
	/* network, and other ways to reach a process */
	SYS_socket,
	SYS_socketpair,
	SYS_connect,
	SYS_bind,
	SYS_listen,
	SYS_accept,
	SYS_accept4,
	SYS_sendto,
	SYS_sendmsg,
	SYS_sendmmsg,
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_mq_open,
	SYS_msgget,
	SYS_semget,
	SYS_shmget,
	SYS_kill,
	SYS_tkill,
	SYS_ptrace,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_pidfd_open,
	SYS_pidfd_getfd,
	SYS_pidfd_send_signal,
	/* programs, and rights */
	SYS_execve,
	SYS_execveat,
	SYS_unshare,
	SYS_setns,
	SYS_chroot,
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_move_mount,
	SYS_open_tree,
	SYS_fsopen,
	SYS_fsmount,
	SYS_bpf,
	SYS_perf_event_open,
	SYS_userfaultfd,
	SYS_add_key,
	SYS_request_key,
	SYS_keyctl,
	SYS_init_module,
	SYS_finit_module,
	SYS_kexec_load,
	SYS_reboot,
	SYS_swapon,
	/* changes of files */
	SYS_open_by_handle_at,
	SYS_truncate,
	SYS_ftruncate,
	SYS_fallocate,
	SYS_renameat2,
	SYS_mkdirat,
	SYS_linkat,
	SYS_symlinkat,
	SYS_unlinkat,
	SYS_mknodat,
	SYS_fchmod,
	SYS_fchmodat,
	SYS_fchown,
	SYS_fchownat,
	SYS_utimensat,
	SYS_setxattr,
	SYS_lsetxattr,
	SYS_fsetxattr,
	SYS_removexattr,
	SYS_lremovexattr,
	SYS_fremovexattr,
#ifdef SYS_open /* what newer architectures leave out */
	SYS_fork,
	SYS_vfork,
	SYS_creat,
	SYS_rename,
	SYS_mkdir,
	SYS_rmdir,
	SYS_link,
	SYS_symlink,
	SYS_unlink,
	SYS_mknod,
	SYS_chmod,
	SYS_chown,
	SYS_lchown,
	SYS_utime,
	SYS_utimes,
	SYS_futimesat,
#endif
#ifdef SYS_renameat
	SYS_renameat,
#endif
};

/* A filter in the making; there is room for all of refused[]. */
struct filter {
	struct sock_filter op[2 * sizeof(refused) / sizeof(*refused) + 32];
	unsigned short n;
};

static void add(struct filter *f, uint16_t code, uint32_t k, uint8_t jt,
		uint8_t jf)
{
	f->op[f->n++] = (struct sock_filter){ code, jt, jf, k };
}

static void answer(struct filter *f, int error)
{
	add(f, BPF_RET | BPF_K,
	    error ? SECCOMP_RET_ERRNO | (uint32_t)error : SECCOMP_RET_ALLOW, 0,
	    0);
}

/* If the number is nr: any of these bits in argument `arg` (set) or none of
 * them (!set) is refused, and the rest is allowed. */
static void bits(struct filter *f, uint32_t nr, int arg, uint32_t mask,
		 bool set)
{
	const size_t at = offsetof(struct seccomp_data, args) +
			  8 * (size_t)arg +
			  (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0);

	add(f, BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 4);
	add(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)at, 0, 0);
	add(f, BPF_JMP | BPF_JSET | BPF_K, mask, set ? 0 : 1, set ? 1 : 0);
	answer(f, EPERM);
	answer(f, 0);
}

static void build(struct filter *f)
{
	const uint32_t writes = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;

	add(f, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0,
	    0);
	add(f, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	add(f, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	add(f, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0,
	    0);
	/* newer calls, and those of x32; callers have others for old kernels */
	add(f, BPF_JMP | BPF_JGT | BPF_K, SYS_futex_waitv, 2, 0);
	add(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 1, 0);
	add(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
	answer(f, ENOSYS);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		add(f, BPF_JMP | BPF_JEQ | BPF_K, refused[i], 0, 1);
		answer(f, EPERM);
	}
	bits(f, SYS_openat, 2, writes, true);
#ifdef SYS_open
	bits(f, SYS_open, 1, writes, true);
#endif
	bits(f, SYS_clone, 0, CLONE_THREAD, false);
	answer(f, 0);
}

static int limit_calls(struct pen_err *err)
{
	struct filter f = { .n = 0 };
	struct sock_fprog prog = { .filter = f.op };

	build(&f);
	prog.len = f.n;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		return fail_system(err, "seccomp filters");
	return 0;
}
#else
static int limit_calls(struct pen_err *err)
{
	return pen__fail(err, P_UNSUPPORTED_SYSTEM, "--sandbox",
			 "supported on x86-64 and arm64 only");
}
#endif

int sandbox_enter(struct pen_spec *spec, int argc, char **argv,
		  struct pen_err *err)
{
	int rc;

	for (int i = 0; i < argc; i++) {
		const char *s = argv[i] + strspn(argv[i], "+");

		if (!strncmp(s, "index_cache=", 12) && strcmp(s + 12, "off"))
			return pen__fail(err, P_CONFLICT, "--sandbox",
					 "no index is written in a sandbox; "
					 "leave out index_cache=");
	}
	rc = pen_spec_parse(spec, "index_cache=off", err);
	if (rc)
		return rc;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return fail_system(err, "no_new_privs");
	rc = limit_files(argc, argv, err);
	return rc ? rc : limit_calls(err);
}
