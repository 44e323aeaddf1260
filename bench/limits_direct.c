/*
 * Random reads that bypass the page cache: each thread has a ring with
 * registered file and buffers, and keeps a given number of reads in flight. The
 * first and the last word of every read are compared with what cmd_make_random
 * wrote.
 */
#include "limits.h"

#ifdef BENCH_URING
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct reads {
	int fd;
	size_t size;
	uint32_t *order, n;
	unsigned depth;
	double end;
	pthread_barrier_t ready, go;
	atomic_uint_fast64_t next, done;
};

/* The reads of a thread, one per slot. */
struct reader {
	struct reads *all;
	struct io_uring ring;
	char *mem;
	uint32_t *id;
	unsigned flying;
};

static void open_reader(struct reader *t)
{
	const struct reads *r = t->all;
	struct iovec mem;

	if (io_uring_queue_init(r->depth, &t->ring,
				IORING_SETUP_SINGLE_ISSUER |
					IORING_SETUP_DEFER_TASKRUN) &&
	    io_uring_queue_init(r->depth, &t->ring, 0))
		die("cannot set up io_uring");
	t->id = need(r->depth, sizeof(*t->id));
	t->mem = need_huge(r->depth, r->size);
	mem = (struct iovec){ t->mem, r->depth * r->size };
	if (io_uring_register_buffers(&t->ring, &mem, 1) ||
	    io_uring_register_files(&t->ring, &r->fd, 1))
		die("cannot register the buffers and the file");
}

static void issue(struct reader *t, unsigned slot)
{
	struct reads *r = t->all;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&t->ring);

	t->id[slot] = r->order[atomic_fetch_add(&r->next, 1) % r->n];
	io_uring_prep_read_fixed(sqe, 0, t->mem + slot * r->size,
				 (unsigned)r->size, t->id[slot] * r->size, 0);
	io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
	io_uring_sqe_set_data64(sqe, slot);
	t->flying++;
}

static void check_read(const struct reader *t, const struct io_uring_cqe *cqe)
{
	const size_t size = t->all->size, words = size / 8;
	const char *p = t->mem + cqe->user_data * size;
	const uint64_t first = t->id[cqe->user_data] * words;

	if (cqe->res != (int)size)
		die("a read failed: %s",
		    cqe->res < 0 ? strerror(-cqe->res) : "too short");
	if (first_word(p) != random_at(1, first) ||
	    first_word(p + size - 8) != random_at(1, first + words - 1))
		die("a read returned wrong data");
}

static void *read_on(void *arg)
{
	struct reads *r = arg;
	struct reader t = { .all = r };
	uint64_t done = 0;

	open_reader(&t);
	pthread_barrier_wait(&r->ready);
	pthread_barrier_wait(&r->go);
	for (unsigned i = 0; i < r->depth; i++)
		issue(&t, i);
	while (t.flying) {
		const bool more = now() < r->end;
		struct io_uring_cqe *cqe;
		unsigned head, n = 0;

		if (io_uring_submit_and_wait(&t.ring, 1) < 0)
			die("io_uring_submit_and_wait failed");
		io_uring_for_each_cqe(&t.ring, head, cqe)
		{
			check_read(&t, cqe);
			t.flying--;
			n++;
			if (more)
				issue(&t, (unsigned)cqe->user_data);
		}
		io_uring_cq_advance(&t.ring, n);
		done += n;
	}
	io_uring_queue_exit(&t.ring);
	atomic_fetch_add(&r->done, done);
	return NULL;
}

/* FILE SIZE DEPTH THREADS SECONDS: reads of SIZE, aligned to it. */
void cmd_direct(char **arg)
{
	const unsigned nthreads = (unsigned)number(arg[3]);
	struct reads r = { .size = number(arg[1]),
			   .depth = (unsigned)number(arg[2]) };
	pthread_t *thread = need(nthreads, sizeof(*thread));
	double start, cpu;
	struct stat st;

	r.fd = open(arg[0], O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (r.fd < 0 || fstat(r.fd, &st))
		die("%s: %s", arg[0], strerror(errno));
	if (!r.size || (size_t)st.st_size < r.size)
		die("%s: too short", arg[0]);
	r.n = (uint32_t)((size_t)st.st_size / r.size);
	r.order = shuffled(r.n);
	pthread_barrier_init(&r.ready, NULL, nthreads + 1);
	pthread_barrier_init(&r.go, NULL, nthreads + 1);
	for (unsigned i = 0; i < nthreads; i++)
		if (pthread_create(&thread[i], NULL, read_on, &r))
			die("pthread_create failed");
	pthread_barrier_wait(&r.ready);
	cpu = cpu_now();
	start = now();
	r.end = start + decimal(arg[4]);
	pthread_barrier_wait(&r.go);
	for (unsigned i = 0; i < nthreads; i++)
		pthread_join(thread[i], NULL);
	printf("{\"samples\": %" PRIu64 ", \"seconds\": %.6f, "
	       "\"cpu_s\": %.6f}\n",
	       (uint64_t)atomic_load(&r.done), now() - start, cpu_now() - cpu);
}
#else
void cmd_direct(char **arg)
{
	(void)arg;
	die("built without liburing");
}
#endif
