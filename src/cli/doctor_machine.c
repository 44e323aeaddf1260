/* doctor: CPU, memory, limits and kernel settings. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "emulate/system.h"

/* CPU quota of the control group, in CPUs; 0: no limit. */
static double cpu_quota(void)
{
	uint64_t quota, period;
	char text[64], *end;

	if (doctor_read("/sys/fs/cgroup/cpu.max", text, sizeof(text))) {
		double q = strtod(text, &end), p;

		p = end != text ? strtod(end, NULL) : 0;
		return p > 0 ? q / p : 0;
	}
	if (doctor_number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", &quota) &&
	    doctor_number("/sys/fs/cgroup/cpu/cpu.cfs_period_us", &period) &&
	    quota < UINT32_MAX && period)
		return (double)quota / (double)period;
	return 0;
}

static void check_cpus(struct doctor *d, const struct pen_host *h)
{
	double quota = cpu_quota();
	cpu_set_t set;
	unsigned may = h->cpus;

	if (!sched_getaffinity(0, sizeof(set), &set))
		may = (unsigned)CPU_COUNT(&set);
	if (quota > 0 && quota < may) {
		doctor_say(d, "cpus", DOCTOR_BETTER,
			   "%u, but a control group limits the CPU time to "
			   "%.1f CPUs",
			   may, quota);
		doctor_because(d, "excess threads are throttled in the middle "
				  "of a batch, for up to 100 ms");
		doctor_advise(d,
			      "set threads=%u, or give the container more CPUs",
			      quota < 1 ? 1 : (unsigned)quota);
	} else {
		doctor_say(d, "cpus", may < h->cpus ? DOCTOR_NOTE : DOCTOR_FINE,
			   "%u of %u available (%s)", may, h->cpus, h->cpu);
		if (may < h->cpus)
			doctor_because(d,
				       "taskset, a batch system or a container "
				       "restricts the process to these");
	}
}

static void check_features(struct doctor *d)
{
	bool avx2 = __builtin_cpu_supports("avx2");
	bool sse = __builtin_cpu_supports("sse4.2");
	bool mul = __builtin_cpu_supports("pclmul");

	if (avx2 && sse && mul) {
		doctor_say(d, "cpu features", DOCTOR_FINE,
			   "AVX2, SSE 4.2, PCLMUL%s",
			   __builtin_cpu_supports("avx512f") ? ", AVX-512"
							     : "");
		return;
	}
	doctor_say(d, "cpu features", DOCTOR_NOTE, "missing:%s%s%s",
		   avx2 ? "" : " AVX2", sse ? "" : " SSE 4.2",
		   mul ? "" : " PCLMUL");
	doctor_because(
		d, "checksums, decompression and single cells use slower code");
	doctor_advise(d, "in a virtual machine, pass through the host CPU");
}

static void check_governor(struct doctor *d)
{
	char text[64];

	if (!doctor_read("/sys/devices/system/cpu/cpu0/cpufreq/"
			 "scaling_governor",
			 text, sizeof(text)))
		return;
	if (!strcmp(text, "performance") || !strcmp(text, "schedutil")) {
		doctor_say(d, "cpu frequency", DOCTOR_FINE, "governor %s",
			   text);
		return;
	}
	doctor_say(d, "cpu frequency", DOCTOR_BETTER, "governor %s", text);
	doctor_because(d, "a loader that waits for data looks idle, so the CPU "
			  "is clocked down when the data arrives");
	doctor_advise(d, "cpupower frequency-set -g performance");
}

static void check_clock(struct doctor *d)
{
	uint64_t start = pen__now_ns(), cost;
	char text[64];

	for (int i = 0; i < 1000; i++)
		(void)pen__now_ns();
	cost = (pen__now_ns() - start) / 1000;
	if (!doctor_read("/sys/devices/system/clocksource/clocksource0/"
			 "current_clocksource",
			 text, sizeof(text)))
		snprintf(text, sizeof(text), "unknown");
	doctor_say(d, "clock", cost > 200 ? DOCTOR_BETTER : DOCTOR_FINE,
		   "%s, %s to read", text, human_time((double)cost / 1e9));
	if (cost <= 200)
		return;
	doctor_because(d, "the clock is read several times per batch");
	doctor_advise(d, "boot with clocksource=tsc if the TSC of this machine "
			 "is stable");
}

static void check_memory(struct doctor *d, const struct pen_host *h)
{
	char *text = pen__proc_read("/proc/meminfo");
	uint64_t total = 0, avail = 0;

	if (text) {
		pen__proc_number(text, "MemTotal:", &total);
		pen__proc_number(text, "MemAvailable:", &avail);
	}
	pen__free(text);
	if (h->memory_bytes && total && h->memory_bytes < total * 1024) {
		doctor_say(d, "memory", DOCTOR_NOTE,
			   "%s, limited by a control group; the machine has %s",
			   human_bytes((double)h->memory_bytes),
			   human_bytes((double)total * 1024));
		doctor_because(
			d,
			"the page cache counts towards the limit: larger data "
			"sets are read from the device again in every epoch");
	} else {
		doctor_say(d, "memory", DOCTOR_FINE, "%s, %s available",
			   human_bytes((double)total * 1024),
			   human_bytes((double)avail * 1024));
	}
}

static void check_huge_pages(struct doctor *d)
{
	char text[128];

	if (!doctor_read("/sys/kernel/mm/transparent_hugepage/enabled", text,
			 sizeof(text)))
		return;
	if (!strstr(text, "[never]")) {
		doctor_say(d, "huge pages", DOCTOR_FINE, "transparent: %s",
			   text);
		return;
	}
	doctor_say(d, "huge pages", DOCTOR_BETTER, "transparent: never");
	doctor_because(d, "shuffled reads of large mapped files miss the TLB "
			  "at every sample");
	doctor_advise(d, "echo madvise > "
			 "/sys/kernel/mm/transparent_hugepage/enabled");
}

static void check_files(struct doctor *d)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l))
		return;
	if (l.rlim_cur >= 4096) {
		doctor_say(d, "open files", DOCTOR_FINE, "at most %s",
			   grouped(l.rlim_cur));
		return;
	}
	doctor_say(d, "open files",
		   l.rlim_cur < 1024 ? DOCTOR_BETTER : DOCTOR_NOTE,
		   "at most %s (could be %s)", grouped(l.rlim_cur),
		   grouped(l.rlim_max));
	doctor_because(d, "with many files, fewer stay open and the others are "
			  "reopened when needed");
	doctor_advise(
		d, "ulimit -n %llu",
		(unsigned long long)(l.rlim_max < 65536 ? l.rlim_max : 65536));
}

static void check_locked(struct doctor *d)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_MEMLOCK, &l))
		return;
	if (!geteuid() || l.rlim_cur >= (rlim_t)1 << 30) {
		doctor_say(d, "locked memory", DOCTOR_FINE, "%s",
			   !geteuid() ? "no limit (root)"
			   : l.rlim_cur == RLIM_INFINITY
				   ? "no limit"
				   : human_bytes((double)l.rlim_cur));
		return;
	}
	doctor_say(d, "locked memory", DOCTOR_NOTE, "at most %s",
		   human_bytes((double)l.rlim_cur));
	doctor_because(d, "mlock=true, which locks batches in memory for "
			  "copies to a GPU, is limited to this");
	doctor_advise(d, "ulimit -l unlimited, or set memlock in "
			 "/etc/security/limits.conf");
}

static void check_uring(struct doctor *d)
{
	uint64_t off = 0;

	if (pen_store_usable("uring")) {
		doctor_say(d, "io_uring", DOCTOR_FINE, "works");
		return;
	}
	if (!pen_help_of("store", "uring")) {
		doctor_say(d, "io_uring", DOCTOR_BETTER,
			   "not included in this build");
		doctor_advise(d, "apt-get install liburing-dev, then rebuild");
	} else {
		bool set = doctor_number("/proc/sys/kernel/io_uring_disabled",
					 &off) &&
			   off;

		doctor_say(d, "io_uring", DOCTOR_BETTER, "not permitted");
		doctor_advise(d, "%s",
			      set ? "sysctl kernel.io_uring_disabled=0"
				  : "in a container, allow it in the seccomp "
				    "profile");
	}
	doctor_because(d, "each thread has one read in flight (store=posix) "
			  "instead of many");
}

static void check_shm(struct doctor *d)
{
	struct statvfs v;
	double size;

	if (statvfs("/dev/shm", &v)) {
		doctor_say(d, "/dev/shm", DOCTOR_NOTE, "missing");
		doctor_because(d, "penstock does not use it; PyTorch's "
				  "worker processes do");
		return;
	}
	size = (double)v.f_blocks * (double)v.f_frsize;
	doctor_say(d, "/dev/shm", size < 1e9 ? DOCTOR_NOTE : DOCTOR_FINE, "%s",
		   human_bytes(size));
	if (size >= 1e9)
		return;
	doctor_because(d, "penstock does not use it, but PyTorch's worker "
			  "processes do, and die of a bus error when it is "
			  "full");
	doctor_advise(d, "docker run --shm-size=8g, to compare with PyTorch");
}

/* Emulated accelerators sleep more precisely with real-time priority. */
static void check_realtime(struct doctor *d)
{
	struct rlimit l;
	bool may = !geteuid() || (!getrlimit(RLIMIT_RTPRIO, &l) && l.rlim_cur);

	doctor_say(d, "real time", may ? DOCTOR_FINE : DOCTOR_NOTE, "%s",
		   may ? "permitted" : "not permitted");
	if (may)
		return;
	doctor_because(d, "emulated accelerators (penstock run) overshoot "
			  "their computing time by about 50 us per step");
	doctor_advise(
		d, "set rtprio 1 in /etc/security/limits.conf, or run as root");
}

static void check_cold(struct doctor *d)
{
	bool may = !access("/proc/sys/vm/drop_caches", W_OK);

	doctor_say(d, "page cache", may ? DOCTOR_FINE : DOCTOR_NOTE, "%s",
		   may ? "can be dropped entirely"
		       : "can only be dropped file by file");
	if (!may)
		doctor_because(d,
			       "cold runs drop the files they read, which is "
			       "sufficient; file system metadata stays cached");
}

static void check_write_back(struct doctor *d)
{
	uint64_t ratio, bytes;

	if (!doctor_number("/proc/sys/vm/dirty_ratio", &ratio) ||
	    !doctor_number("/proc/sys/vm/dirty_bytes", &bytes))
		return;
	if (bytes)
		doctor_say(d, "write-back", DOCTOR_FINE,
			   "writers are throttled above %s of dirty data",
			   human_bytes((double)bytes));
	else
		doctor_say(d, "write-back", DOCTOR_FINE,
			   "writers are throttled above %llu %% of memory of "
			   "dirty data",
			   (unsigned long long)ratio);
	doctor_because(d, "smaller checkpoints look faster than the device "
			  "unless they are synced, as penstock does");
}

void doctor_machine(struct doctor *d)
{
	struct pen_host h;

	pen__host(&h);
	doctor_say(d, "machine", DOCTOR_FINE, "%s, %s", h.name, h.kernel);
	check_cpus(d, &h);
	check_features(d);
	check_governor(d);
	check_clock(d);
	check_memory(d, &h);
	check_huge_pages(d);
	check_files(d);
	check_locked(d);
	check_uring(d);
	check_shm(d);
	check_realtime(d);
	check_cold(d);
	check_write_back(d);
}
