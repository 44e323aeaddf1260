/* Information about the machine: CPU, memory, devices, pressure. */
#ifndef PEN_EMULATE_SYSTEM_H
#define PEN_EMULATE_SYSTEM_H

#include <stdbool.h>

#include "base/err.h"
#include "base/text.h"

struct pen_host {
	char name[256], kernel[128], cpu[128];
	unsigned cpus;
	uint64_t memory_bytes; /* total, or the limit of the container */
};
void pen__host(struct pen_host *);

/* Reads a file of /proc; NUL-terminated; the caller frees. NULL: not readable.
 */
char *pen__proc_read(const char *path);
/* Adds "key : value" lines to the open JSON object, as DLIO stores cpuinfo and
 * meminfo. */
void pen__proc_json(struct pen_text *, const char *text);
/* The number after a key at the start of a line; false: none. */
bool pen__proc_number(const char *text, const char *key, uint64_t *out);

struct pen_disk {
	char name[32];
	uint64_t reads, read_bytes, read_ms, writes, write_bytes, write_ms,
		io_ms, weighted_ms;
	uint64_t reads_merged, writes_merged; /* also shown by iostat */
	uint64_t discards, discards_merged, discard_bytes, discard_ms, flushes,
		flush_ms;
};
/* Parses one line of diskstats; false if it is malformed. */
bool pen__disk_parse(const char *line, struct pen_disk *);
/* The device that stores path ("vda", "nvme0n1"); false: unknown. */
bool pen__disk_of(const char *path, char *name, size_t cap);
bool pen__disk_read(const char *name, struct pen_disk *); /* diskstats */

struct pen_disk_about { /* /sys/block/NAME */
	uint64_t read_ahead_kb, nr_requests, size_bytes;
	bool rotational;
	char scheduler[32]; /* the active one */
	char model[64];
	bool known;
};
void pen__disk_about(const char *name, struct pen_disk_about *);

struct pen_pressure { /* /proc/pressure: totals in us; 0 if missing */
	uint64_t cpu_some, cpu_full, io_some, io_full, memory_some, memory_full;
	bool known;
};
void pen__pressure_read(struct pen_pressure *);

struct pen_self_io { /* /proc/self/io */
	uint64_t read_bytes, write_bytes, rchar, wchar;
};
void pen__self_io(struct pen_self_io *);

/* The current counters of the machine and the process, for pen__facts_since().
 * device: the one that stores the data, or "". Counters shared by the processes
 * of a host are divided among them (nlocal). */
struct pen_facts;
void pen__machine_facts(struct pen_facts *, const char *device,
			unsigned nlocal);

struct pen_cpu_time { /* /proc/stat, first line, in ticks */
	uint64_t user, nice, system, iowait, steal, idle;
};
void pen__cpu_time(struct pen_cpu_time *);

/* Resources used by other processes since start(), as a JSON object: "seconds",
 * "cpus" (of the machine), "cpu_s" (of other processes), "stolen_s" (by the
 * hypervisor), "cpu_pressure" (of all processes), "load_average". Children
 * count as ours once they were waited for. */
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
 * Samples disks, CPU and pressure once a second, in one thread. `disks` is a
 * list of names separated by commas or blanks; NULL or "": all disks with any
 * I/O.
 */
struct pen_watch;
int pen__watch_start(struct pen_watch **out, const char *disks,
		     struct pen_err *err);
/* Fails if one of the names is not a disk. */
int pen__watch_check(const char *disks, struct pen_err *err);
/* Takes an additional sample, at the start or end of a phase. Any thread. */
void pen__watch_now(struct pen_watch *);
/* Stops immediately, writes "seconds", "disks" and "pressure" of the entire
 * time and at most 1000 "samples" to an open JSON object (or an empty text),
 * and frees it. NULL ok. */
void pen__watch_stop(struct pen_watch *, struct pen_text *json);
/* Writes iostat.json in the layout of sysstat, like the profiler of DLIO;
 * before pen__watch_stop(). */
int pen__watch_iostat(struct pen_watch *, const char *path,
		      struct pen_err *err);

#endif
