/* Threads: this is the only place that starts and joins them. */
#ifndef PEN_BASE_TEAM_H
#define PEN_BASE_TEAM_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

#define PEN_MOST_THREADS 65536 /* of one process */

struct pen_team;
/* Starts n threads running fn(arg, 0..n-1), named for /proc and perf. */
int pen__team_start(struct pen_team **out, unsigned n, const char *name,
		    void (*fn)(void *arg, unsigned i), void *arg,
		    struct pen_err *err);
void pen__team_join(struct pen_team *); /* waits for all, frees; NULL ok */

/* The kernel's counters of a thread of this process: how long it ran, and how
 * long it waited for a CPU. False: not available. */
struct pen_thread_times {
	uint64_t cpu_ns, queue_ns;
};
bool pen__thread_times(int tid, struct pen_thread_times *);

/* Reads a file of this process's control group as text; false if there is none.
 * controller "": version 2. */
bool pen__cgroup_read(const char *controller, const char *file, char *buf,
		      size_t cap);

/* CPUs this process may use, by affinity and cgroup quota. */
unsigned pen__cpus(void);
/* Memory this process may use: the machine's available memory or the cgroup's
 * rest. */
uint64_t pen__memory_available(void);
/* Peak memory of this process in bytes; 0: unknown. */
uint64_t pen__memory_peak(void);

#endif
