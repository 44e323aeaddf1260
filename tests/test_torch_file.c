/* The file format of torch.save: written, read, damaged, and beyond 4 GiB. */
#include "ckpt.h"

#include <fcntl.h>

#include "base/mem.h"

/* A file in memory. */
struct memory {
	struct pen_peek peek; /* must be first */
	uint8_t *p;
	size_t n, cap, at;
	unsigned step; /* bytes per call */
	bool full;
	int wrong; /* added to what check() expects */
};

static uint8_t *mem_room(void *arg, size_t *n)
{
	struct memory *m = arg;

	if (m->full)
		return NULL;
	if (m->cap - m->n < m->step) {
		m->cap = 2 * m->cap + m->step;
		m->p = realloc(m->p, m->cap);
	}
	*n = m->step;
	return m->p + m->n;
}

static void mem_put(void *arg, size_t n)
{
	((struct memory *)arg)->n += n;
}

static uint8_t byte_at(const struct pen_torch_piece *x, size_t i)
{
	return (uint8_t)(x->tensor * 31 + (x->off + i) * 7);
}

static void mem_make(void *arg, const struct pen_torch_piece *x, uint8_t *to)
{
	(void)arg;
	for (size_t i = 0; i < x->n; i++)
		to[i] = byte_at(x, i);
}

static int mem_peek(struct pen_peek *pk, uint64_t off, void *buf, size_t len,
		    struct pen_err *err)
{
	struct memory *m = (struct memory *)pk;

	if (off > m->n || len > m->n - off)
		return pen__fail(err, P_TRUNCATED, pk->name, "too short");
	memcpy(buf, m->p + off, len);
	return 0;
}

static const uint8_t *mem_next(void *arg, size_t *n, struct pen_err *err)
{
	struct memory *m = arg;
	const uint8_t *p = m->p + m->at;

	if (!CHECK(m->at < m->n)) {
		pen__fail(err, P_IO, "", "past the end");
		return NULL;
	}
	*n = m->n - m->at < m->step ? m->n - m->at : m->step;
	m->at += *n;
	return p;
}

static size_t mem_check(void *arg, const struct pen_torch_piece *x,
			const uint8_t *p)
{
	const struct memory *m = arg;

	for (size_t i = 0; i < x->n; i++)
		if (p[i] != (uint8_t)(byte_at(x, i) + m->wrong))
			return i;
	return x->n;
}

static int mem_write(struct memory *m, const struct pen_torch_state *s,
		     struct pen_err *err)
{
	struct pen_torch_sink to = { m, mem_room, mem_put, mem_make };

	m->n = 0;
	return pen__torch_write(s, &to, "memory", err);
}

static int mem_read(struct memory *m, const struct pen_torch_state *s,
		    struct pen_err *err)
{
	struct pen_torch_source from = { m, &m->peek, mem_next, mem_check };

	m->peek = (struct pen_peek){ .name = "memory",
				     .size = m->n,
				     .read = mem_peek };
	m->at = 0;
	return pen__torch_read(s, &from, err);
}

static void add(struct pen_torch_state *s, enum pen_torch_kind kind,
		const char *key, int dtype, uint64_t n)
{
	CHECK_EQ(pen__torch_add(s, kind, key, dtype, n), 0);
}

/* All kinds of items: two dicts, one repeated, tensors outside, an empty
 * one. */
static struct pen_torch_state mixed(uint64_t more)
{
	struct pen_torch_state s = { 0 };

	add(&s, PEN_TORCH_OPEN, "1", 0, 0);
	add(&s, PEN_TORCH_TENSOR, "0", PEN_SD_FP16, 5 + more);
	add(&s, PEN_TORCH_TENSOR, "2", PEN_SD_FP32, 300);
	add(&s, PEN_TORCH_CLOSE, "", 0, 0);
	add(&s, PEN_TORCH_SAME, "2", 0, 0);
	add(&s, PEN_TORCH_OPEN, "3", 0, 0);
	add(&s, PEN_TORCH_TENSOR, "a", PEN_SD_FP64, 9);
	add(&s, PEN_TORCH_CLOSE, "", 0, 0);
	add(&s, PEN_TORCH_OPEN, "4", 0, 0);
	add(&s, PEN_TORCH_CLOSE, "", 0, 0);
	add(&s, PEN_TORCH_TENSOR, "a", PEN_SD_BF16, 0);
	add(&s, PEN_TORCH_TENSOR, "combined", PEN_SD_UINT8, 70000);
	add(&s, PEN_TORCH_TENSOR, "b", PEN_SD_INT8, 1);
	return s;
}

static void round_trip(void)
{
	struct pen_torch_state s = mixed(0), other = mixed(1);
	struct memory m = { .step = 64 };
	struct pen_err err = { 0 };

	for (m.step = 1; m.step < 100000; m.step = m.step * 7 + 3) {
		CHECK_EQ(mem_write(&m, &s, &err), 0);
		CHECK_EQ(mem_read(&m, &s, &err), 0);
		CHECK_STR(err.msg, "");
	}
	CHECK_EQ(mem_read(&m, &other, &err), PEN_EDATA);
	CHECK(strstr(err.msg, "key '0'") != NULL);
	other.nitems--;
	other.item[1].n--;
	CHECK_EQ(mem_read(&m, &other, &err), PEN_EDATA);
	CHECK(strstr(err.msg, "more than expected") != NULL);
	m.wrong = 1;
	CHECK_EQ(mem_read(&m, &s, &err), PEN_EDATA);
	CHECK(strstr(err.msg, "is not what was saved") != NULL);
	m.full = true;
	err = (struct pen_err){ 0 };
	CHECK_EQ(mem_write(&m, &s, &err), PEN_EIO);
	CHECK_EQ(err.code, 0); /* the sink reports it */
	pen__torch_fini(&s);
	pen__torch_fini(&other);
	free(m.p);
}

/* No truncation and no flipped bit is accepted or breaks anything. */
static void damage(void)
{
	struct pen_torch_state s = mixed(0);
	struct memory m = { .step = 512 };
	size_t n, unseen = 0;

	s.item[11].n = 100;
	CHECK_EQ(mem_write(&m, &s, NULL), 0);
	n = m.n;
	for (m.n = 0; m.n < n; m.n = test_next_place(m.n, n))
		CHECK(mem_read(&m, &s, NULL) < 0);
	m.n = n;
	for (size_t i = 0; i < n; i = test_next_place(i, n)) {
		for (unsigned bit = 1; bit < 256; bit *= 16) {
			m.p[i] ^= (uint8_t)bit;
			unseen += mem_read(&m, &s, NULL) == 0;
			m.p[i] ^= (uint8_t)bit;
		}
	}
	CHECK_EQ(mem_read(&m, &s, NULL), 0);
	/* undetectable in zip: padding, times, versions, descriptors */
	CHECK(unseen < n);
	pen__torch_fini(&s);
	free(m.p);
}

/* Pickles that are other programs. */
static void pickles(void)
{
	static const struct {
		const char *p;
		size_t n;
	} bad[] = {
#define P(s) { s, sizeof(s) - 1 }
		P(""),
		P("\x80\x02"),
		P("\x80\x02."),
		P("\x80\x02}q"),
		P("\x80\x02}q\x05."),
		P("\x80\x02}X\xff\xff\xff\xff"
		  "a."),
		P("\x80\x02}}s."),
		P("\x80\x02(u."),
		P("\x80\x02t."),
		P("\x80\x02Q."),
		P("\x80\x02R."),
		P("\x80\x02\x87."),
		P("\x80\x02h\x00."),
		P("\x80\x02j\xff\xff\xff\xff."),
		P("\x80\x02r\xff\xff\xff\xff."),
		P("\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R."),
		P("\x80\x02"
		  "cos\nsyst"),
		P("\x80\x02\x8a\xff."),
		P("\x80\x02\x8a\x01\xff."),
		P("\x80\x04}."),
		P("\x80\x02}q\x00h\x00h\x00s."),
		P("\x80\x02}(}q\x01}u."),
		P("\x80\x02}(u}."),
#undef P
	};
	struct pen_torch_state s = { 0 };
	struct pen_torch_key key[1] = { 0 };
	struct pen_err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		/* of the exact length, for the sanitizer */
		uint8_t *p = malloc(bad[i].n ? bad[i].n : 1);
		struct pen_span span = { p, bad[i].n };

		memcpy(p, bad[i].p, bad[i].n);
		err = (struct pen_err){ 0 };
		CHECK_EQ(pen__torch_unpickle(&s, span, "bad", key, &err),
			 PEN_EDATA);
		CHECK(err.msg[0]);
		free(p);
	}
}

/* Dicts around the size of a batch, and numbers around the width of a type. */
static void put_want(FILE *f, struct pen_torch_state *s, unsigned i)
{
	struct memory m = { .step = 65536 };
	char path[128];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%u.pt", ckpt_dir, i);
	CHECK_EQ(mem_write(&m, s, NULL), 0);
	out = fopen(path, "wb");
	CHECK(out && fwrite(m.p, 1, m.n, out) == m.n);
	if (out)
		fclose(out);
	fprintf(f, "%u.pt 0 ", i);
	ckpt_describe(f, s);
	pen__torch_fini(s);
	free(m.p);
}

static void by_torch(void)
{
	static const unsigned sizes[] = { 0, 1, 2, 999, 1000, 1001, 2000 };
	struct pen_torch_state s = mixed(0);
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/want", ckpt_dir);
	f = fopen(path, "w");
	if (!CHECK(f != NULL))
		return;
	put_want(f, &s, 0);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (unsigned k = 0; k < sizes[i]; k++) {
			char key[24];

			snprintf(key, sizeof(key), "%u", k);
			add(&s, PEN_TORCH_TENSOR, key, (int)(k % 6),
			    k % 7 ? k : 65530 + k);
		}
		put_want(f, &s, i + 1);
	}
	fclose(f);
	if (ckpt_have_torch())
		CHECK(ckpt_python("load", ckpt_dir, NULL, NULL));
}

/* Zeros that are not stored: everything but tensors goes to a sparse file. */
struct sparse {
	struct pen_peek peek; /* must be first */
	int fd;
	uint64_t at;
	uint8_t *zero; /* 1 MiB */
	bool tensor;
};
#define MIB ((size_t)1 << 20)

static uint8_t *sparse_room(void *arg, size_t *n)
{
	struct sparse *x = arg;

	*n = MIB;
	x->tensor = false;
	return x->zero;
}

static void sparse_make(void *arg, const struct pen_torch_piece *x, uint8_t *to)
{
	(void)x;
	(void)to;
	((struct sparse *)arg)->tensor = true;
}

static void sparse_put(void *arg, size_t n)
{
	struct sparse *x = arg;

	if (!x->tensor) {
		CHECK(pwrite(x->fd, x->zero, n, (off_t)x->at) == (ssize_t)n);
		memset(x->zero, 0, n);
	}
	x->at += n;
}

static int sparse_peek(struct pen_peek *pk, uint64_t off, void *buf, size_t len,
		       struct pen_err *err)
{
	const struct sparse *x = (const struct sparse *)pk;

	if (pread(x->fd, buf, len, (off_t)off) == (ssize_t)len)
		return 0;
	return pen__fail(err, P_IO, pk->name, "cannot be read");
}

/* Reading a hole would fill the page cache with it. */
static const uint8_t *sparse_next(void *arg, size_t *n, struct pen_err *err)
{
	static const uint8_t hole[MIB];
	struct sparse *x = arg;
	const bool in = x->at >= MIB && x->at < (uint64_t)1 << 32;
	const ssize_t got = in ? (ssize_t)MIB
			       : pread(x->fd, x->zero, MIB, (off_t)x->at);

	(void)err;
	*n = got > 0 ? (size_t)got : 0;
	x->at += *n;
	return in ? hole : *n ? x->zero : NULL;
}

static void wide(void)
{
	struct pen_torch_state s = { 0 };
	struct sparse x = { .zero = calloc(1, MIB) };
	struct pen_torch_sink to = { &x, sparse_room, sparse_put, sparse_make };
	struct pen_torch_source from = { &x, &x.peek, sparse_next, NULL };
	struct pen_err err = { 0 };
	char path[128];

	add(&s, PEN_TORCH_TENSOR, "0", PEN_SD_INT8, ((uint64_t)1 << 32) + 77);
	add(&s, PEN_TORCH_TENSOR, "1", PEN_SD_FP32, 100);
	snprintf(path, sizeof(path), "%s/wide.zip", ckpt_dir);
	x.fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
	CHECK_EQ(pen__torch_write(&s, &to, path, &err), 0);
	x.peek = (struct pen_peek){ .name = path,
				    .size = x.at,
				    .read = sparse_peek };
	x.at = 0;
	CHECK_EQ(pen__torch_read(&s, &from, &err), 0);
	CHECK_STR(err.msg, "");
	close(x.fd);
	if (access(PYTHON, X_OK) == 0)
		CHECK(ckpt_python("zip", path, "4294967373", "400"));
	unlink(path);
	pen__torch_fini(&s);
	free(x.zero);
}

static void no_memory(void)
{
	struct pen_torch_state s = mixed(0);
	struct memory m = { .step = 4096 };
	int rc = PEN_ENOMEM;

	for (uint64_t n = 1; n < 1000 && rc; n++) {
		pen__mem_fail_nth(n, true);
		rc = mem_write(&m, &s, NULL);
		CHECK(rc == 0 || rc == PEN_ENOMEM);
	}
	CHECK_EQ(rc, 0);
	rc = PEN_ENOMEM;
	for (uint64_t n = 1; n < 1000 && rc; n++) {
		pen__mem_fail_nth(n, true);
		rc = mem_read(&m, &s, NULL);
		CHECK(rc == 0 || rc == PEN_ENOMEM);
	}
	CHECK_EQ(rc, 0);
	pen__mem_fail_nth(0, false);
	pen__torch_fini(&s);
	free(m.p);
}

int main(void)
{
	ckpt_folder("torch");
	round_trip();
	damage();
	pickles();
	by_torch();
	wide();
	no_memory();
	return test_end();
}
