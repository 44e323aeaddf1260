/*
 * store=auto: which store suits this access. Measured (see docs/method.md): a
 * pread of 1 KiB costs five times as much as a copy from a mapping, but mapping
 * a file to read it once costs more than reading it, and page faults on data
 * that is not in memory are read one at a time.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/team.h"
#include "store/store.h"

#define PROBES 32
/* Above this a copy from a mapping takes as long as a read, and its pages count
 * as memory of this process. */
#define SMALL_FILE (64u << 10)
#define PROBE_BYTES (1u << 20) /* querying a page takes 0.1 us */

/* Share of one window of an object that is in the page cache; < 0: unknown. */
static double window_resident(int fd, uint64_t off, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t n = (len + page - 1) / page, in = 0;
	unsigned char vec[PROBE_BYTES / 4096 + 1];
	void *p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, (off_t)off);

	if (p == MAP_FAILED)
		return -1;
	if (n > sizeof(vec) || mincore(p, len, vec)) {
		munmap(p, len);
		return -1;
	}
	munmap(p, len);
	for (size_t i = 0; i < n; i++)
		in += vec[i] & 1;
	return (double)in / (double)n;
}

static double object_resident(const struct pen_objects *o, uint32_t i,
			      unsigned probe, unsigned nprobes)
{
	uint64_t size = o->obj[i].size, off = 0;
	char path[4096];
	double r;
	int fd;

	if (!size || !pen__object_path(o, i, path, sizeof(path)))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -1;
	if (size > PROBE_BYTES)
		off = ((size - PROBE_BYTES) / nprobes * probe) & ~4095ull;
	r = window_resident(
		fd, off, size - off < PROBE_BYTES ? size - off : PROBE_BYTES);
	close(fd);
	return r;
}

double pen__store_resident(const struct pen_objects *o)
{
	uint64_t last = UINT64_MAX;
	double sum = 0;
	unsigned n = 0;

	for (unsigned p = 0; p < PROBES && o->nobj; p++) {
		uint64_t i = o->nobj * p / PROBES;
		double r;

		/* look at each of a few small ones only once */
		if (i == last && o->obj[i].size <= PROBE_BYTES)
			continue;
		last = i;
		r = object_resident(o, (uint32_t)i, p, PROBES);
		if (r >= 0) {
			sum += r;
			n++;
		}
	}
	return n ? sum / n : -1;
}

bool pen__store_uring_works(void)
{
	struct pen_store *st;
	struct pen_queue *q;
	struct pen_objects none = { 0 };
	bool ok = false;

	if (!pen__store_find("uring") ||
	    pen__store_open(&st, "uring", NULL, 0, NULL))
		return false;
	if (!pen__store_bind(st, &none, NULL) &&
	    !pen__queue_open(&q, st, 4, NULL)) {
		pen__queue_close(q);
		ok = true;
	}
	pen__store_close(st);
	return ok;
}

struct pen_pick pen__store_pick(const struct pen_objects *o, bool whole_objects,
				bool packed, uint64_t read_bytes,
				double resident)
{
	/* a mapped file would count as memory of this process in addition to
	 * the unpacked bytes, and would save only a copy that is cheap compared
	 * to unpacking */
	if (resident >= 0.95 && packed)
		return (struct pen_pick){
			.name = "posix",
			.why = "in the page cache, to be unpacked",
		};
	/* small files stay mapped: after the first epoch there are no system
	 * calls at all, and before that nothing is lost */
	if (resident >= 0.95 && whole_objects && o->nobj <= PEN_MAPPED_MAX &&
	    o->total_bytes / (o->nobj ? o->nobj : 1) <= SMALL_FILE)
		return (struct pen_pick){
			.name = "mmap",
			.why = "in the page cache, small files that can stay "
			       "mapped",
		};
	if (resident >= 0.95 && whole_objects)
		return (struct pen_pick){
			.name = "posix",
			.why = "in the page cache, read file by file",
		};
	if (resident >= 0.95)
		return (struct pen_pick){
			.name = "mmap",
			.why = "in the page cache, many samples per file",
		};
	/* read page by page in random order they would take a hundred times as
	 * long as sequentially, which is what willneed asks for */
	if (!whole_objects && !packed && read_bytes < 16384 &&
	    o->total_bytes < pen__memory_available() / 2)
		return (struct pen_pick){
			.name = "mmap",
			.why = "small samples of files that fit in memory, "
			       "read ahead whole",
			.opt = { { "advise", "willneed" } },
			.nopts = 1,
		};
	if (pen__store_uring_works())
		return (struct pen_pick){
			.name = "uring",
			.why = "not in the page cache: many reads in flight",
		};
	return (struct pen_pick){
		.name = "posix",
		.why = "not in the page cache, and io_uring is not allowed "
		       "here",
	};
}
