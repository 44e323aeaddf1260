/*
 * The pickle of a dict of tensors, exactly as Python's pickler writes it with
 * protocol 2: the same opcodes, the same memo numbers, dicts in batches of a
 * thousand. Strings that Python creates each time (numbers as keys) are written
 * each time; constants are memoized at first use.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "make/torch_file.h"

#define BATCH 1000 /* items of a dict between two marks */
#define NDTYPES (PEN_SD_FP64 + 1)
#define NCONST 16 /* constant keys that are memoized */
#define MOST_BYTES ((uint64_t)1 << 62)

static const struct {
	const char *storage;
	size_t size;
} types[NDTYPES] = {
	[PEN_SD_INT8] = { "CharStorage", 1 },
	[PEN_SD_UINT8] = { "ByteStorage", 1 },
	[PEN_SD_FP16] = { "HalfStorage", 2 },
	[PEN_SD_BF16] = { "BFloat16Storage", 2 },
	[PEN_SD_FP32] = { "FloatStorage", 4 },
	[PEN_SD_FP64] = { "DoubleStorage", 8 },
};

size_t pen__torch_size(int dtype)
{
	return types[dtype].size;
}

const char *pen__torch_storage(int dtype)
{
	return types[dtype].storage;
}

int pen__torch_add(struct pen_torch_state *s, enum pen_torch_kind kind,
		   const char *key, int dtype, uint64_t n)
{
	struct pen_torch_item *it;

	if (s->nitems == s->cap) {
		const size_t cap = s->cap ? 2 * s->cap : 16;

		it = pen__realloc(s->item, cap, sizeof(*it));
		if (!it)
			return PEN_ENOMEM;
		s->item = it;
		s->cap = cap;
	}
	it = &s->item[s->nitems];
	*it = (struct pen_torch_item){ .kind = kind, .dtype = dtype, .n = n };
	snprintf(it->key, sizeof(it->key), "%s", key);
	if (kind == PEN_TORCH_TENSOR) {
		if (n > (MOST_BYTES - s->bytes) / types[dtype].size)
			return PEN_EINVAL;
		s->bytes += n * types[dtype].size;
		s->ntensors++;
	}
	s->nitems++;
	return 0;
}

void pen__torch_fini(struct pen_torch_state *s)
{
	pen__free(s->item);
	*s = (struct pen_torch_state){ 0 };
}

/* Memo entries, as number plus one; 0: not yet written. */
struct pickler {
	struct pen_buf *out;
	uint32_t next;
	uint32_t rebuild, odict, storage, cpu, type[NDTYPES];
	uint32_t first_dict;
	size_t ntensors;
	struct {
		const char *s;
		uint32_t memo;
	} constant[NCONST];
	unsigned nconst;
};

static void op(struct pickler *p, char c)
{
	pen__buf_put(p->out, &c, 1);
}

static uint32_t memo_put(struct pickler *p)
{
	const uint32_t i = p->next++;

	op(p, i < 256 ? 'q' : 'r');
	pen__buf_le(p->out, i, i < 256 ? 1 : 4);
	return i + 1;
}

static void memo_get(struct pickler *p, uint32_t memo)
{
	const uint32_t i = memo - 1;

	op(p, i < 256 ? 'h' : 'j');
	pen__buf_le(p->out, i, i < 256 ? 1 : 4);
}

static uint32_t put_str(struct pickler *p, const char *s)
{
	op(p, 'X');
	pen__buf_le(p->out, strlen(s), 4);
	pen__buf_str(p->out, s);
	return memo_put(p);
}

static void put_const(struct pickler *p, uint32_t *memo, const char *s)
{
	if (*memo)
		memo_get(p, *memo);
	else
		*memo = put_str(p, s);
}

static void put_global(struct pickler *p, uint32_t *memo, const char *module,
		       const char *name)
{
	if (*memo) {
		memo_get(p, *memo);
		return;
	}
	pen__buf_printf(p->out, "c%s\n%s\n", module, name);
	*memo = memo_put(p);
}

static void put_int(struct pickler *p, uint64_t v)
{
	unsigned n;

	if (v <= UINT16_MAX) {
		op(p, v < 256 ? 'K' : 'M');
		pen__buf_le(p->out, v, v < 256 ? 1 : 2);
	} else if (v <= INT32_MAX) {
		op(p, 'J');
		pen__buf_le(p->out, v, 4);
	} else {
		/* one bit more than the number, for the sign */
		n = (64 - (unsigned)__builtin_clzll(v)) / 8 + 1;
		op(p, (char)0x8a);
		pen__buf_le(p->out, n, 1);
		pen__buf_le(p->out, v, n);
	}
}

static void put_key(struct pickler *p, const char *key)
{
	if (key[0] >= '0' && key[0] <= '9') {
		put_str(p, key);
		return;
	}
	for (unsigned i = 0; i < p->nconst; i++) {
		if (!strcmp(p->constant[i].s, key)) {
			memo_get(p, p->constant[i].memo);
			return;
		}
	}
	if (p->nconst < NCONST) {
		p->constant[p->nconst].s = key;
		p->constant[p->nconst++].memo = put_str(p, key);
	} else {
		put_str(p, key);
	}
}

static void put_tensor(struct pickler *p, const struct pen_torch_item *it)
{
	char key[24];

	snprintf(key, sizeof(key), "%zu", p->ntensors++);
	put_global(p, &p->rebuild, "torch._utils", "_rebuild_tensor_v2");
	op(p, '(');
	op(p, '(');
	put_const(p, &p->storage, "storage");
	put_global(p, &p->type[it->dtype], "torch", types[it->dtype].storage);
	put_str(p, key);
	put_const(p, &p->cpu, "cpu");
	put_int(p, it->n);
	op(p, 't');
	memo_put(p);
	op(p, 'Q');
	put_int(p, 0); /* offset in the storage */
	put_int(p, it->n);
	op(p, (char)0x85);
	memo_put(p);
	put_int(p, 1); /* stride */
	op(p, (char)0x85);
	memo_put(p);
	op(p, (char)0x89); /* no gradient needed */
	put_global(p, &p->odict, "collections", "OrderedDict");
	op(p, ')');
	op(p, 'R');
	memo_put(p);
	op(p, 't');
	memo_put(p);
	op(p, 'R');
	memo_put(p);
}

/* The end of the dict that starts at item i: its CLOSE, or the end. */
static size_t dict_end(const struct pen_torch_state *s, size_t i)
{
	unsigned depth = 0;

	for (; i < s->nitems; i++) {
		if (s->item[i].kind == PEN_TORCH_OPEN)
			depth++;
		else if (s->item[i].kind == PEN_TORCH_CLOSE && !depth--)
			break;
	}
	return i;
}

static size_t count(const struct pen_torch_state *s, size_t i, size_t end)
{
	size_t n = 0;

	for (; i < end; i++, n++)
		if (s->item[i].kind == PEN_TORCH_OPEN)
			i = dict_end(s, i + 1);
	return n;
}

static void put_leaves(struct pickler *p, const struct pen_torch_state *s,
		       size_t i, size_t end);

/* Writes one value of a dict; returns its last item. */
static size_t put_value(struct pickler *p, const struct pen_torch_state *s,
			size_t i)
{
	const struct pen_torch_item *it = &s->item[i];
	uint32_t memo;
	size_t end;

	put_key(p, it->key);
	if (it->kind == PEN_TORCH_TENSOR) {
		put_tensor(p, it);
		return i;
	}
	if (it->kind == PEN_TORCH_SAME) {
		memo_get(p, p->first_dict);
		return i;
	}
	end = dict_end(s, i + 1);
	op(p, '}');
	memo = memo_put(p);
	if (!p->first_dict)
		p->first_dict = memo;
	put_leaves(p, s, i + 1, end);
	return end;
}

/* The items of a dict: a single one, or batches; a full batch is never last. */
static void put_leaves(struct pickler *p, const struct pen_torch_state *s,
		       size_t i, size_t end)
{
	const size_t n = count(s, i, end);
	size_t k = 0;

	if (n == 1) {
		put_value(p, s, i);
		op(p, 's');
		return;
	}
	if (!n)
		return;
	do {
		op(p, '(');
		for (k = 0; k < BATCH && i < end; k++)
			i = put_value(p, s, i) + 1;
		op(p, 'u');
	} while (k == BATCH);
}

void pen__torch_pickle(const struct pen_torch_state *s, struct pen_buf *out)
{
	struct pickler p = { .out = out };

	pen__buf_put(out, "\x80\x02}", 3);
	memo_put(&p);
	put_leaves(&p, s, 0, s->nitems);
	op(&p, '.');
}
