/* What the machine is and does: CPU, memory, devices, pressure. */
#ifndef PEN_EMULATE_SYSTEM_H
#define PEN_EMULATE_SYSTEM_H

#include <stdbool.h>

#include "base/err.h"
#include "base/text.h"

struct pen_host {
	char name[256], kernel[128], cpu[128];
	unsigned cpus;
	uint64_t memory_bytes;
};
void pen__host(struct pen_host *);

/* A file of /proc as text, NUL-terminated; the caller frees; NULL: not there.
 */
char *pen__proc_read(const char *path);
/* "key : value" lines as JSON members of the open object, as DLIO keeps
 * cpuinfo and meminfo. */
void pen__proc_json(struct pen_text *, const char *text);

struct pen_disk {
	char name[32];
	uint64_t reads, read_bytes, read_ms, writes, write_bytes, write_ms,
		io_ms, weighted_ms;
};
/* The device that holds path ("vda", "nvme0n1"); false: none is known. */
bool pen__disk_of(const char *path, char *name, size_t cap);
bool pen__disk_read(const char *name, struct pen_disk *); /* diskstats */

struct pen_pressure { /* /proc/pressure: totals in us; 0 when not there */
	uint64_t cpu_some, io_some, io_full, memory_some, memory_full;
	bool known;
};
void pen__pressure_read(struct pen_pressure *);

struct pen_self_io { /* /proc/self/io */
	uint64_t read_bytes, write_bytes, rchar, wchar;
};
void pen__self_io(struct pen_self_io *);

/* Samples disk, CPU and pressure once a second into iostat.json-like rows and
 * for the result; one thread. */
struct pen_watch;
int pen__watch_start(struct pen_watch **out, const char *disk,
		     struct pen_err *err);
/* Stops and writes into an open JSON object: "samples": [...] */
void pen__watch_stop(struct pen_watch *, struct pen_text *json);
/* iostat.json in sysstat's layout (what DLIO's profiler leaves behind). */
int pen__watch_iostat(const struct pen_watch *, const char *path,
		      struct pen_err *err);

#endif
