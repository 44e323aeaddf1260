/*
 * Reads the counters of the machine as facts for the verdict: the CPU time that
 * the process used and could have used, interference by other processes, and
 * device activity. A counter that the kernel lacks stays unknown.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/team.h"
#include "emulate/system.h"
#include "verdict/facts.h"

/* The number after a word at the start of a line, or NAN. */
static double number_after(const char *text, const char *word)
{
	uint64_t v;

	return pen__proc_number(text, word, &v) ? (double)v : NAN;
}

/* "some avg10=0.00 ... total=123" in seconds, or NAN */
static double stalled_s(const char *text, const char *kind)
{
	const char *line = strstr(text, kind);
	const char *total = line ? strstr(line, "total=") : NULL;

	return total ? strtod(total + 6, NULL) / 1e6 : NAN;
}

/* Time throttled by a CPU quota, in both versions of control groups. */
static double throttled_s(void)
{
	char buf[4096];

	if (pen__cgroup_read("", "cpu.stat", buf, sizeof(buf)))
		return number_after(buf, "throttled_usec ") / 1e6;
	if (pen__cgroup_read("cpu", "cpu.stat", buf, sizeof(buf)))
		return number_after(buf, "throttled_time ") / 1e9;
	return NAN;
}

static void host_facts(double *v, double share)
{
	struct pen_pressure p;
	struct pen_cpu_time c;
	const double tick = (double)sysconf(_SC_CLK_TCK);
	char buf[512];

	pen__pressure_read(&p);
	pen__cpu_time(&c);
	v[PEN_HOST_S] = (double)pen__now_ns() / 1e9 * share;
	if (p.known) {
		v[PEN_PRESSURE_CPU_S] = (double)p.cpu_some / 1e6 * share;
		v[PEN_PRESSURE_CPU_FULL_S] = (double)p.cpu_full / 1e6 * share;
		v[PEN_PRESSURE_MEMORY_S] = (double)p.memory_full / 1e6 * share;
	}
	if (pen__cgroup_read("", "cpu.pressure", buf, sizeof(buf))) {
		v[PEN_PRESSURE_GROUP_S] = stalled_s(buf, "some ") * share;
		v[PEN_PRESSURE_GROUP_FULL_S] = stalled_s(buf, "full ") * share;
	}
	v[PEN_THROTTLED_S] = throttled_s() * share;
	v[PEN_CPU_ALL_S] = (double)(c.user + c.nice + c.system + c.iowait +
				    c.steal + c.idle) /
			   tick * share;
	v[PEN_CPU_IDLE_S] = (double)(c.idle + c.iowait) / tick * share;
	v[PEN_STEAL_S] = (double)c.steal / tick * share;
}

static void disk_facts(double *v, const char *device, double share)
{
	struct pen_disk d;

	if (!device[0] || !pen__disk_read(device, &d))
		return;
	v[PEN_DISK_READS] = (double)d.reads * share;
	v[PEN_DISK_BYTES] = (double)d.read_bytes * share;
	v[PEN_DISK_WAIT_S] = (double)d.read_ms / 1e3 * share;
	v[PEN_DISK_BUSY_S] = (double)d.io_ms / 1e3 * share;
}

void pen__machine_facts(struct pen_facts *f, const char *device,
			unsigned nlocal)
{
	const double share = 1.0 / (nlocal ? nlocal : 1);
	const double now = (double)pen__now_ns() / 1e9;
	const unsigned cpus = pen__cpus();
	struct pen_thread_times own;
	struct pen_self_io io;
	double *v = f->v;

	host_facts(v, share);
	disk_facts(v, device, share);
	snprintf(f->device, sizeof(f->device), "%s", device);
	/* a process bound to some CPUs has them to itself */
	v[PEN_CPU_ROOM_S] = now * cpus;
	if ((long)cpus == sysconf(_SC_NPROCESSORS_ONLN))
		v[PEN_CPU_ROOM_S] *= share;
	v[PEN_SECONDS] = now;
	v[PEN_CPU_S] = (double)pen__cpu_ns() / 1e9;
	pen__self_io(&io);
	if (io.rchar) /* 0: the file is not readable */
		v[PEN_DEVICE_BYTES] = (double)io.read_bytes;
	if (pen__thread_times(gettid(), &own))
		v[PEN_OWN_QUEUE_S] = (double)own.queue_ns / 1e9;
}
