/* See facts.h. */
#include "verdict/facts.h"

#include <math.h>
#include <string.h>

enum join { SUM, LEAST, MOST };

static const struct {
	const char *name;
	enum join join;
} table[PEN_NFACTS] = {
	[PEN_PLAN_S] = { "plan_s", SUM },
	[PEN_OPEN_S] = { "open_s", SUM },
	[PEN_READ_S] = { "read_s", SUM },
	[PEN_UNPACK_S] = { "unpack_s", SUM },
	[PEN_DECODE_S] = { "decode_s", SUM },
	[PEN_COPY_S] = { "copy_s", SUM },
	[PEN_PREPROCESS_S] = { "preprocess_s", SUM },
	[PEN_IDLE_S] = { "idle_s", SUM },
	[PEN_RUN_S] = { "run_s", SUM },
	[PEN_QUEUE_S] = { "queue_s", SUM },
	[PEN_THREADS_S] = { "threads_s", SUM },
	[PEN_SECONDS] = { "seconds", SUM },
	[PEN_WAIT_S] = { "wait_s", SUM },
	[PEN_FIRST_S] = { "first_wait_s", SUM },
	[PEN_COMPUTE_S] = { "compute_s", SUM },
	[PEN_LATE_S] = { "late_s", SUM },
	[PEN_BARRIER_S] = { "barrier_s", SUM },
	[PEN_OWN_QUEUE_S] = { "consumer_queue_s", SUM },
	[PEN_BATCHES] = { "batches", SUM },
	[PEN_READY] = { "ready_batches", SUM },
	[PEN_MEMORY_S] = { "memory_wait_s", SUM },
	[PEN_CPU_S] = { "cpu_s", SUM },
	[PEN_READS] = { "reads", SUM },
	[PEN_READ_BYTES] = { "read_bytes", SUM },
	[PEN_DEVICE_BYTES] = { "device_bytes", SUM },
	[PEN_CACHE_BYTES] = { "cache_bytes", SUM },
	[PEN_TIMED_READS] = { "timed_reads", SUM },
	[PEN_TIMED_S] = { "timed_s", SUM },
	[PEN_HOST_S] = { "host_s", SUM },
	[PEN_PRESSURE_CPU_S] = { "pressure_cpu_s", SUM },
	[PEN_PRESSURE_CPU_FULL_S] = { "pressure_cpu_full_s", SUM },
	[PEN_PRESSURE_GROUP_S] = { "pressure_cpu_group_s", SUM },
	[PEN_PRESSURE_GROUP_FULL_S] = { "pressure_cpu_group_full_s", SUM },
	[PEN_THROTTLED_S] = { "throttled_s", SUM },
	[PEN_PRESSURE_MEMORY_S] = { "pressure_memory_s", SUM },
	[PEN_CPU_ROOM_S] = { "cpu_room_s", SUM },
	[PEN_CPU_ALL_S] = { "cpu_all_s", SUM },
	[PEN_CPU_IDLE_S] = { "cpu_idle_s", SUM },
	[PEN_STEAL_S] = { "steal_s", SUM },
	[PEN_DISK_READS] = { "disk_reads", SUM },
	[PEN_DISK_BYTES] = { "disk_bytes", SUM },
	[PEN_DISK_WAIT_S] = { "disk_wait_s", SUM },
	[PEN_DISK_BUSY_S] = { "disk_busy_s", SUM },
	[PEN_BEST_READ_S] = { "best_read_s", LEAST },
	[PEN_PREFETCH] = { "prefetch", LEAST },
	[PEN_PREFETCH_WANTED] = { "prefetch_wanted", MOST },
	[PEN_BATCH_ROWS] = { "batch_rows", MOST },
};

const char *pen__fact_name(enum pen_fact f)
{
	return table[f].name;
}

void pen__facts_init(struct pen_facts *f)
{
	*f = (struct pen_facts){ .training = false };
	for (size_t i = 0; i < PEN_NFACTS; i++)
		f->v[i] = NAN;
}

/* A sum with an unknown part is unknown (NAN). */
void pen__facts_join(struct pen_facts *to, const struct pen_facts *from)
{
	for (size_t i = 0; i < PEN_NFACTS; i++)
		to->v[i] = table[i].join == SUM ? to->v[i] + from->v[i]
			   : table[i].join == LEAST
				   ? fmin(to->v[i], from->v[i])
				   : fmax(to->v[i], from->v[i]);
}

void pen__facts_since(struct pen_facts *now, const struct pen_facts *before)
{
	for (size_t i = 0; i < PEN_NFACTS; i++) {
		const double d = now->v[i] - before->v[i];

		if (table[i].join == SUM)
			now->v[i] = d < 0 ? 0 : d;
	}
}

void pen__facts_of_loader(struct pen_facts *f, const struct pen_stats *s)
{
	double *v = f->v;

	v[PEN_PLAN_S] = (double)s->plan_ns / 1e9;
	v[PEN_OPEN_S] = (double)s->file_open_ns / 1e9;
	v[PEN_READ_S] = (double)s->read_ns / 1e9;
	v[PEN_UNPACK_S] = (double)s->unpack_ns / 1e9;
	v[PEN_DECODE_S] = (double)s->decode_ns / 1e9;
	v[PEN_COPY_S] = (double)s->emit_ns / 1e9;
	v[PEN_PREPROCESS_S] = (double)s->preprocess_ns / 1e9;
	v[PEN_IDLE_S] = (double)s->idle_ns / 1e9;
	v[PEN_RUN_S] = (double)s->cpu_ns / 1e9;
	v[PEN_QUEUE_S] = (double)s->queue_ns / 1e9;
	v[PEN_WAIT_S] = (double)s->wait_ns / 1e9;
	v[PEN_BATCHES] = (double)s->nbatches;
	v[PEN_READY] = s->ready_mean * (double)s->nbatches;
	v[PEN_MEMORY_S] = (double)s->memory_wait_ns / 1e9;
	v[PEN_READS] = (double)s->nreads;
	v[PEN_READ_BYTES] = (double)s->read_bytes;
	v[PEN_CACHE_BYTES] = (double)s->cache_bytes;
	v[PEN_TIMED_READS] = (double)s->timed_reads;
	v[PEN_TIMED_S] = (double)s->timed_ns / 1e9;
	if (s->best_read_ns)
		v[PEN_BEST_READ_S] = (double)s->best_read_ns / 1e9;
	v[PEN_PREFETCH] = s->prefetch;
	v[PEN_PREFETCH_WANTED] = s->prefetch_wanted;
}

/* For files on a known device, bytes that the device did not read came from
 * memory. Other stores and file systems do not reveal where bytes came from. */
double pen__facts_cached(const struct pen_facts *f)
{
	static const char *const files[] = { "posix", "uring", "mmap" };
	const double *v = f->v, read = v[PEN_READ_BYTES],
		     device = v[PEN_DEVICE_BYTES];
	bool known = false;

	for (size_t i = 0; i < 3; i++)
		known |= !strcmp(f->store, files[i]);
	if (!known || !f->device[0] || !(read > 0 && device >= 0))
		return NAN;
	return device < read ? 1 - device / read : 0;
}
