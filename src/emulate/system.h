/* What the machine is and does: CPU, memory, devices, pressure. */
#ifndef PEN_EMULATE_SYSTEM_H
#define PEN_EMULATE_SYSTEM_H

#include <stdbool.h>

#include "base/err.h"
#include "base/text.h"

struct pen_host {
	char name[256], kernel[128], cpu[128];
	unsigned cpus;
	uint64_t memory_bytes; /* the machine's, or less in a container */
};
void pen__host(struct pen_host *);

/* A file of /proc as text, NUL-terminated; the caller frees; NULL: not there.
 */
char *pen__proc_read(const char *path);
/* "key : value" lines as JSON members of the open object, as DLIO keeps
 * cpuinfo and meminfo. */
void pen__proc_json(struct pen_text *, const char *text);
/* The number behind a key at the start of a line; false: none. */
bool pen__proc_number(const char *text, const char *key, uint64_t *out);

struct pen_disk {
	char name[32];
	uint64_t reads, read_bytes, read_ms, writes, write_bytes, write_ms,
		io_ms, weighted_ms;
	uint64_t reads_merged, writes_merged; /* and what iostat shows beside */
	uint64_t discards, discards_merged, discard_bytes, discard_ms, flushes,
		flush_ms;
};
/* One line of diskstats, up to its end; false when it is not one. */
bool pen__disk_parse(const char *line, struct pen_disk *);
/* The device that holds path ("vda", "nvme0n1"); false: none is known. */
bool pen__disk_of(const char *path, char *name, size_t cap);
bool pen__disk_read(const char *name, struct pen_disk *); /* diskstats */

struct pen_disk_about { /* /sys/block/NAME */
	uint64_t read_ahead_kb, nr_requests, size_bytes;
	bool rotational;
	char scheduler[32]; /* the chosen one */
	char model[64];
	bool known;
};
void pen__disk_about(const char *name, struct pen_disk_about *);

struct pen_pressure { /* /proc/pressure: totals in us; 0 when not there */
	uint64_t cpu_some, cpu_full, io_some, io_full, memory_some, memory_full;
	bool known;
};
void pen__pressure_read(struct pen_pressure *);

struct pen_self_io { /* /proc/self/io */
	uint64_t read_bytes, write_bytes, rchar, wchar;
};
void pen__self_io(struct pen_self_io *);

/* The machine's and the process's counters as they are now, for
 * pen__facts_since(). device: that holds the data, or "". What processes of one
 * host have in common is divided among them (nlocal). */
struct pen_facts;
void pen__machine_facts(struct pen_facts *, const char *device,
			unsigned nlocal);

struct pen_cpu_time { /* /proc/stat, first line: in ticks */
	uint64_t user, nice, system, iowait, steal, idle;
};
void pen__cpu_time(struct pen_cpu_time *);

/* What others used of the machine from start() on, into a JSON object:
 * "seconds", "cpus" (of the machine), "cpu_s" (of other processes), "stolen_s"
 * (by the host), "cpu_pressure" (of everybody), "load_average". Children count
 * as ours once they were waited for. */
struct pen_others {
	uint64_t ns;
	struct pen_cpu_time cpu;
	struct pen_pressure psi;
	double own_s;
};
void pen__others_start(struct pen_others *);
void pen__others_json(struct pen_text *, const char *key,
		      const struct pen_others *);

/*
 * Samples disks, CPU and pressure once a second; one thread. `disks` is one
 * name or several, apart by commas or blanks; NULL or "": all that have moved
 * anything.
 */
struct pen_watch;
int pen__watch_start(struct pen_watch **out, const char *disks,
		     struct pen_err *err);
/* Are all of these names of disks? */
int pen__watch_check(const char *disks, struct pen_err *err);
/* A sample out of turn: where a phase begins or ends. Any thread. */
void pen__watch_now(struct pen_watch *);
/* Stops at once, writes into an open JSON object (or an empty text):
 * "seconds", "disks" and "pressure" over the whole time, "samples": [...] of
 * at most 1000; and frees it. NULL ok. */
void pen__watch_stop(struct pen_watch *, struct pen_text *json);
/* iostat.json in sysstat's layout (what DLIO's profiler leaves behind), up to
 * now; before pen__watch_stop(). */
int pen__watch_iostat(struct pen_watch *, const char *path,
		      struct pen_err *err);

#endif
