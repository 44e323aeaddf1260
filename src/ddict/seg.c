/*
 * The memory of a shard: created, mapped, locked. It is a memfd, so it has no
 * name in any file system and nothing is left after the last process has ended.
 * Its size is the budget and is sealed; pages are allocated on demand.
 */
#include "ddict/seg.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/show.h"

static const char magic[8] = { 'P', 'E', 'N', 'D', 'D', 'I', 'C', 'T' };

static uint64_t head_size(void)
{
	return (sizeof(struct pen_seg_head) + 4095) & ~(uint64_t)4095;
}

static int map(struct pen_seg *s, int prot, const char *where,
	       struct pen_err *err)
{
	void *p =
		mmap(NULL, s->size, prot, MAP_SHARED | MAP_NORESERVE, s->fd, 0);

	if (p == MAP_FAILED)
		return pen__fail_sys(err, errno, where,
				     "cannot map %s (lower memory=)",
				     pen__show_bytes((double)s->size).s);
	s->base = p;
	return 0;
}

/* Memory private to this process, not inherited by its children. */
static int make_self(struct pen_seg *s, struct pen_err *err)
{
	void *p = mmap(NULL, sizeof(*s->self), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return pen__fail_nomem(err, "dictionary", sizeof(*s->self));
	s->self = p;
	if (madvise(p, sizeof(*s->self), MADV_WIPEONFORK))
		return pen__fail_sys(err, errno, "dictionary",
				     "MADV_WIPEONFORK is not available "
				     "(requires Linux 4.14)");
	return 0;
}

static int init_lock(pthread_mutex_t *m, struct pen_err *err)
{
	pthread_mutexattr_t a;
	int rc;

	rc = pthread_mutexattr_init(&a);
	if (!rc) {
		rc = pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
		if (!rc)
			rc = pthread_mutexattr_setrobust(&a,
							 PTHREAD_MUTEX_ROBUST);
		if (!rc)
			rc = pthread_mutex_init(m, &a);
		pthread_mutexattr_destroy(&a);
	}
	return rc ? pen__fail_sys(err, rc, "dictionary",
				  "cannot initialise the shared mutex")
		  : 0;
}

static int make_memory(struct pen_seg *s, struct pen_err *err)
{
	s->fd = memfd_create("penstock-ddict", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->fd < 0 || ftruncate(s->fd, (off_t)s->size) ||
	    fcntl(s->fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return pen__fail_sys(err, errno, "dictionary",
				     "cannot create shared memory");
	if (fallocate(s->fd, 0, 0, (off_t)head_size()))
		return pen__fail_sys(err, errno, "dictionary",
				     "cannot allocate shared memory");
	return map(s, PROT_READ | PROT_WRITE, "dictionary", err);
}

static int init_head(struct pen_seg *s, struct pen_err *err)
{
	struct pen_seg_head *h = s->head;
	bool full;
	int rc;

	memcpy(h->magic, magic, sizeof(magic));
	h->version = PEN_SEG_VERSION;
	h->head_size = (uint32_t)head_size();
	h->size = s->size;
	h->start = head_size();
	atomic_store(&h->epoch, 1);
	atomic_store(&h->top, h->start);
	atomic_store(&h->taken, h->start);
	if (getrandom(h->id, sizeof(h->id), 0) != sizeof(h->id))
		return pen__fail_sys(err, errno, "dictionary",
				     "cannot read random bytes");
	rc = init_lock(&h->lock, err);
	if (rc)
		return rc;
	if (pen__table_reset(s, &full))
		return pen__fail_nomem(err, "dictionary", 4096);
	return 0;
}

int pen__seg_create(struct pen_seg **out, uint64_t size, struct pen_err *err)
{
	struct pen_seg *s;
	int rc;

	if (size < PEN_SEG_MIN || size > PEN_SEG_MAX)
		return pen__fail(err, P_BAD_VALUE, "memory",
				 "must be from 1 MiB to 16 TiB");
	s = pen__calloc(1, sizeof(*s));
	if (!s)
		return pen__fail_nomem(err, "dictionary", sizeof(*s));
	s->size = (size + 4095) & ~(uint64_t)4095;
	rc = make_memory(s, err);
	if (!rc)
		rc = make_self(s, err);
	if (rc)
		goto fail;
	s->head = (void *)s->base;
	rc = init_head(s, err);
	if (!rc)
		rc = pen__seg_join(s, err);
	if (rc)
		goto fail;
	*out = s;
	return 0;
fail:
	pen__seg_close(s);
	return rc;
}

static int map_live(struct pen_seg *s, const char *where, struct pen_err *err)
{
	struct pen_seg_head *h;
	int rc;

	if (s->size < head_size())
		return pen__fail(err, P_NOT_THIS_FORMAT, where,
				 "not a dictionary");
	rc = map(s, PROT_READ | PROT_WRITE, where, err);
	if (rc)
		return rc;
	h = (void *)s->base;
	if (h->version != PEN_SEG_VERSION || h->head_size != head_size() ||
	    h->size != s->size || h->start != head_size())
		return pen__fail(err, P_UNSUPPORTED_FEATURE, where,
				 "created by another version of penstock; run "
				 "one version in all processes");
	s->head = h;
	rc = make_self(s, err);
	return rc ? rc : pen__seg_join(s, err);
}

int pen__seg_map(struct pen_seg **out, int fd, const char *where,
		 struct pen_err *err)
{
	struct pen_seg *s = pen__calloc(1, sizeof(*s));
	char head[sizeof(magic)];
	struct stat st;
	int rc;

	if (!s) {
		close(fd);
		return pen__fail_nomem(err, where, sizeof(*s));
	}
	s->fd = fd;
	if (fstat(fd, &st)) {
		rc = pen__fail_sys(err, errno, where, "cannot read its size");
		goto fail;
	}
	s->size = (uint64_t)st.st_size;
	if (pread(fd, head, sizeof(head), 0) == sizeof(head) &&
	    !memcmp(head, magic, sizeof(magic)))
		rc = map_live(s, where, err);
	else
		rc = pen__image_map(s, where, false, NULL, err);
	if (rc)
		goto fail;
	*out = s;
	return 0;
fail:
	pen__seg_close(s);
	return rc;
}

void pen__seg_close(struct pen_seg *s)
{
	if (!s)
		return;
	if (s->self && atomic_load(&s->self->pid) && !pen__seg_lock(s, NULL)) {
		pen__proc_leave(s);
		pen__seg_unlock(s);
	}
	if (s->self)
		munmap(s->self, sizeof(*s->self));
	if (s->base)
		munmap(s->base, s->size);
	if (s->fd >= 0)
		close(s->fd);
	pen__free(s);
}

/* The dead writer may have left counters wrong, but not the index. */
static void recover(struct pen_seg *s)
{
	const struct pen_seg_table *t = pen__table_of(s);
	uint64_t nkeys = 0, ngone = 0, values = 0, live = 0;

	for (uint64_t i = 0; i < t->nbuckets * PEN_BUCKET; i++) {
		const uint64_t slot = atomic_load(&t->slot[i]);
		const struct pen_seg_rec *r = pen__slot_rec(s, slot);

		ngone += slot == PEN_SLOT_GONE;
		if (!r)
			continue;
		nkeys++;
		values += pen__rec_value(r).len;
		live += pen__rec_size(r);
	}
	atomic_store(&s->head->nkeys, nkeys);
	atomic_store(&s->head->ngone, ngone);
	atomic_store(&s->head->value_bytes, values);
	atomic_store(&s->head->live_bytes,
		     live + pen__table_bytes(t->nbuckets));
	pen__arena_forget(s);
}

int pen__seg_lock(struct pen_seg *s, struct pen_err *err)
{
	int rc = pthread_mutex_lock(&s->head->lock);

	if (rc == EOWNERDEAD) {
		recover(s);
		rc = pthread_mutex_consistent(&s->head->lock);
		if (rc)
			pthread_mutex_unlock(&s->head->lock);
	}
	return rc ? pen__fail_sys(err, rc, "dictionary",
				  "cannot lock the shared mutex")
		  : 0;
}

void pen__seg_unlock(struct pen_seg *s)
{
	pthread_mutex_unlock(&s->head->lock);
}

bool pen__seg_frozen(const struct pen_seg *s)
{
	return !s->head ||
	       atomic_load_explicit(&s->head->frozen, memory_order_acquire);
}

int pen__seg_join(struct pen_seg *s, struct pen_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&s->self->lock);
	if (!atomic_load(&s->self->pid)) {
		rc = pen__seg_lock(s, err);
		if (!rc) {
			rc = pen__proc_join(s, err);
			pen__seg_unlock(s);
		}
	}
	pthread_mutex_unlock(&s->self->lock);
	return rc;
}
