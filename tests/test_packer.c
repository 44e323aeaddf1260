/* Packing of rows, and padding. */
#include "batching.h"
#include "engine.h"
#include "engine/plan_pack.h"

static void test_packer(void)
{
	struct pen_rng g = pen__rng(4, 4);
	struct pen_row_packer *p;
	struct pen_err err;
	uint64_t used = 0, room = 0;

	for (unsigned i = 0; i < 300; i++) {
		const struct rule r = {
			.rows = 1 + (uint32_t)pen__rng_below(&g, 60),
			.pack = 1 + (uint32_t)pen__rng_below(&g, 5000),
			.split = i % 2,
		};
		uint32_t len[1000], n = 0;
		uint64_t over;

		if (!CHECK_EQ(
			    pen__row_packer_new(&p, r.rows, r.pack, 1000, &err),
			    0))
			return;
		p->split = r.split;
		for (; n < 900; n++) {
			len[n] = (uint32_t)pen__rng_below(&g, r.pack);
			if (i % 3 == 0)
				len[n] /= 8;
			if (!pen__row_packer_add(p, len[n]))
				break;
		}
		packs(&r, len, n, &over);
		CHECK_EQ(pen__row_packer_place(p), over);
		while ((over = pen__row_packer_place(p)) > 0)
			pen__row_packer_drop(p, over);
		pen__row_packer_sort(p);
		for (uint32_t k = 1; k < p->npieces; k++) {
			const struct pen_piece *a = &p->piece[p->order[k - 1]];
			const struct pen_piece *b = &p->piece[p->order[k]];

			CHECK(b->start + b->len <= r.pack && b->row < r.rows);
			CHECK(a->row < b->row ||
			      (a->row == b->row &&
			       a->start + a->len <= b->start));
		}
		if (i % 3 == 0 && r.rows > 8 && n < 900 && r.pack > 100) {
			used += p->tokens;
			room += (uint64_t)r.rows * r.pack;
		}
		pen__row_packer_free(p);
	}
	CHECK(room && used * 100 > room * 95);
	for (uint64_t n = 1;; n++) {
		int rc;

		pen__mem_fail_nth(n, false);
		rc = pen__row_packer_new(&p, 3, 10, 20, &err);
		pen__mem_fail_nth(0, false);
		if (!rc)
			break;
		CHECK(rc == PEN_ENOMEM && !p);
	}
	pen__row_packer_free(p);
}

static void test_fill(void)
{
	static const struct {
		enum pen_dtype t;
		int64_t value;
	} cases[] = { { PEN_I8, -1 },  { PEN_U16, 513 }, { PEN_I32, -100 },
		      { PEN_I64, -5 }, { PEN_F16, 2 },	 { PEN_F32, -100 },
		      { PEN_F64, 7 },  { PEN_U8, 255 },	 { PEN_BOOL, 1 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct pen_pad pad = { cases[i].value, false };
		const size_t size = pen_dtype_size(cases[i].t);
		uint8_t to[8 * 13 + 1];
		struct pen_fill f;

		pen__fill_init(&f, &pad, cases[i].t);
		to[13 * size] = 77;
		pen__fill(&f, to, 13 * size);
		for (size_t k = 0; k < 13; k++)
			CHECK(pen__number_at(to, cases[i].t, k) ==
			      (double)cases[i].value);
		CHECK_EQ(to[13 * size], 77);
		pen__fill(&f, to, 0);
	}
}

/* A block of 2 x 3 in one of 3 x 5, at either end. */
static void test_pad_row(void)
{
	struct pen_format f = { .nfields = 1, .units_per_sample = 1 };
	const int16_t src[] = { 1, 2, 3, 4, 5, 6 };
	const int16_t after[] = { 1,  2,  3,  -9, -9, 4,  5, 6,
				  -9, -9, -9, -9, -9, -9, -9 };
	const int16_t before[] = { -9, -9, -9, -9, -9, -9, -9, 1,
				   2,  3,  -9, -9, 4,  5,  6 };

	f.field[0] = (struct pen_field){ .name = "x",
					 .dtype = PEN_I16,
					 .layout = PEN_PADDED,
					 .ndim = 2,
					 .shape = { 3, 5 },
					 .max_bytes = 30 };
	for (int i = 0; i < 2; i++) {
		struct pen_pool *p;
		struct pen_pooled *b;

		f.pad[0] = (struct pen_pad){ -9, i };
		CHECK_EQ(pen__pool_new(&p, &f, 2, false, NULL), 0);
		CHECK_EQ(pen__pool_fill(p, 1, NULL), 0);
		b = p->batch[0];
		CHECK_EQ(pen__pool_reserve(b, 60, NULL), 0);
		b->shapes[0][2] = 2;
		b->shapes[0][3] = 3;
		pen__pad_row(b, 0, 1, src);
		CHECK(!memcmp((uint8_t *)b->mem.p + 30, i ? before : after,
			      30));
		pen__pool_close(p);
	}
}

static void test_take_fill(void)
{
	const struct pen_pad pad = { 4, true };
	struct pen_crop t = { .from = PEN_I16, .to = PEN_I32, .n = 5 };
	const int16_t src[] = { 1, 2, 3 };
	const int32_t want[] = { 4, 4, 1, 2, 3 };
	int32_t row[5];

	pen__fill_init(&t.fill, &pad, PEN_I32);
	pen__crop_piece(&t, row, 0, src, sizeof(src));
	pen__crop_end(&t, row, sizeof(src));
	CHECK(!memcmp(row, want, sizeof(want)));
}

int main(void)
{
	test_packer();
	test_fill();
	test_pad_row();
	test_take_fill();
	return test_end();
}
