/* The files and tensors that each rank writes. */
#include "ckpt.h"

struct list {
	struct pen_opt_list l;
	const char *text;
};

static int64_t one_layer[] = { 16 }, some_layers[] = { 100, 0, 7, 1 };
static int64_t one_group[] = { 128 }, two_groups[] = { 1024, 0, 128 };
static const struct list layer_lists[] = {
	{ { NULL, 0 }, "" },
	{ { one_layer, 1 }, "16" },
	{ { some_layers, 4 }, "100,0,7,1" },
};
static const struct list group_lists[] = {
	{ { NULL, 0 }, "" },
	{ { one_group, 1 }, "128" },
	{ { two_groups, 3 }, "1024,0,128" },
};

static void put_case(FILE *f, const struct pen_config *c, unsigned dp,
		     unsigned world)
{
	fprintf(f,
		"tp=%d pp=%d dp=%u world=%u zero=%d layers=%d hidden=%d "
		"ffn=%d heads=%d kv=%d vocab=%d mdt=%d odt=%d size=%d "
		"transformer=%d",
		(int)c->model.tensor, (int)c->model.pipeline, dp, world,
		(int)c->model.zero_stage, (int)c->model.num_layers,
		(int)c->model.hidden_size, (int)c->model.ffn_hidden_size,
		(int)c->model.num_attention_heads, (int)c->model.num_kv_heads,
		(int)c->model.vocab_size, c->model.model_datatype,
		c->model.optimizer_datatype, (int)c->model.size_bytes,
		c->model.type && !strcmp(c->model.type, "transformer"));
}

#define MOST_FILES 512

/* No two ranks write the same file. */
static void check_names(char (*name)[64], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < i; j++)
			CHECK(strcmp(name[i], name[j]) != 0);
}

static void dump(FILE *f, const struct pen_config *c, unsigned world)
{
	static char name[MOST_FILES][64];
	double layers = 0, optimizer = 0;
	unsigned n = 0;

	for (unsigned rank = 0; rank < world; rank++) {
		struct pen_ckpt_plan p;
		struct pen_err err = { 0 };
		uint64_t bytes = 0;

		if (!CHECK(pen__ckpt_plan(&p, c, rank, world, &err) == 0)) {
			fprintf(stderr, "%s: %s\n", err.where, err.msg);
			return;
		}
		for (size_t i = 0; i < p.nfiles; i++) {
			fprintf(f, "%u %s ", rank, p.file[i].name);
			ckpt_describe(f, &p.file[i].state);
			bytes += p.file[i].state.bytes;
			if (CHECK(n < MOST_FILES))
				memcpy(name[n++], p.file[i].name, 64);
		}
		CHECK_EQ(bytes, p.bytes);
		layers += p.dlio_model;
		optimizer += p.dlio_optimizer;
		pen__ckpt_plan_fini(&p);
	}
	check_names(name, n);
	fprintf(f, "end %.0f\n", pen__ckpt_dlio_model(c, layers) + optimizer);
}

/* One parallelism: all lists, with and without a flat model. */
static void dump_all(FILE *f, struct pen_config *c, unsigned dp, unsigned world)
{
	static char transformer[] = "transformer", other[] = "cnn";

	for (unsigned l = 0; l < 3; l++) {
		for (unsigned g = 0; g < 3; g++) {
			c->model.layer_parameters = layer_lists[l].l;
			c->model.optimization_groups = group_lists[g].l;
			c->model.type = l == g ? transformer : other;
			fprintf(f, "case ");
			put_case(f, c, dp, world);
			fprintf(f, " lp=%s og=%s\n", layer_lists[l].text,
				group_lists[g].text);
			dump(f, c, world);
		}
	}
}

static void combinations(void)
{
	static const struct {
		int tp, pp, zero, layers;
		unsigned dp, world; /* dp: set with a subset; else 0 */
	} of[] = {
		{ 1, 1, 0, 3, 0, 2 },  { 2, 1, 0, 2, 0, 2 },
		{ 1, 1, 1, 3, 0, 1 },  { 1, 1, 1, 3, 0, 4 },
		{ 2, 1, 2, 5, 0, 4 },  { 2, 1, 3, 5, 0, 6 },
		{ 1, 3, 0, 7, 0, 6 },  { 2, 3, 1, 8, 0, 12 },
		{ 3, 2, 2, 2, 0, 12 }, { 1, 1, 3, 4, 0, 3 },
		{ 1, 1, 0, -1, 0, 2 }, { 2, 2, 1, -1, 0, 8 },
		{ 1, 1, 3, 0, 0, 2 },  { 2, 2, 1, 5, 4, 3 },
		{ 1, 1, 3, 5, 8, 2 },  { 4, 2, 0, 3, 2, 16 },
	};
	struct pen_config c = ckpt_config();
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/layout", ckpt_dir);
	f = fopen(path, "w");
	if (!CHECK(f != NULL))
		return;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		const unsigned mp = (unsigned)(of[i].tp * of[i].pp);

		c.model.tensor = of[i].tp;
		c.model.pipeline = of[i].pp;
		c.model.zero_stage = of[i].zero;
		c.model.num_layers = of[i].layers;
		c.model.hidden_size = 100 + (int64_t)i;
		c.model.num_attention_heads = 7;
		c.model.num_kv_heads = 3;
		c.model.ffn_hidden_size = 251;
		c.model.vocab_size = 997;
		c.checkpoint.mode = of[i].dp > 0;
		c.model.data = of[i].dp ? (int64_t)of[i].dp : -1;
		c.model.optimizer_datatype = (int)(i % 6);
		c.model.model_datatype = (int)(5 - i % 6);
		dump_all(f, &c, of[i].dp ? of[i].dp : of[i].world / mp,
			 of[i].world);
	}
	fclose(f);
	if (access(PYTHON, X_OK) == 0)
		CHECK(ckpt_python("layout", path, NULL, NULL));
}

static unsigned count_files(const struct pen_config *c, unsigned world)
{
	unsigned n = 0;

	for (unsigned rank = 0; rank < world; rank++) {
		struct pen_ckpt *k;

		if (!CHECK(pen__ckpt_new(&k, c, rank, world, NULL) == 0))
			return 0;
		n += pen__ckpt_nfiles(k);
		pen__ckpt_free(k);
	}
	return n;
}

/* The values of the tests of DLIO. */
static void counts(void)
{
	struct pen_config c = ckpt_config();
	struct pen_ckpt *k;
	uint64_t bytes;

	CHECK_EQ(count_files(&c, 2), 1);
	c.model.tensor = 2;
	c.model.layer_parameters = layer_lists[1].l;
	c.model.optimization_groups = group_lists[2].l;
	for (c.model.num_layers = 1; c.model.num_layers <= 2;
	     c.model.num_layers++) {
		c.model.zero_stage = 0;
		CHECK_EQ(count_files(&c, 2), 6);
		c.model.zero_stage = 3;
		CHECK_EQ(count_files(&c, 2), 6);
	}
	CHECK(pen__ckpt_new(&k, &c, 1, 2, NULL) == 0);
	CHECK_STR(pen__ckpt_file(k, 0, &bytes), "model_states-1.pt");
	CHECK_EQ(bytes, 10240);
	CHECK_STR(pen__ckpt_file(k, 1, &bytes),
		  "zero_pp_rank_0_mp_rank_1_model_states.pt");
	CHECK_EQ(bytes, 8); /* 16 / 2, all layers */
	CHECK_STR(pen__ckpt_file(k, 2, &bytes),
		  "zero_pp_rank_0_mp_rank_1_optim_states.pt");
	CHECK_EQ(bytes, 3 * (1024 + 128));
	CHECK(pen__ckpt_file(k, 3, &bytes) == NULL);
	CHECK_EQ(pen__ckpt_bytes(k), 10240 + 8 + 3456);
	pen__ckpt_free(k);
}

/*
 * Bytes of all ranks as DLIO counts them. The published sizes are 105, 912 and
 * 5290 GiB for the first three.
 */
static void llamas(void)
{
	static char type[] = "transformer";
	static const struct {
		int layers, hidden, ffn, heads, kv, tp, pp, zero;
		unsigned world;
		uint64_t bytes;
	} of[] = {
		{ 32, 4096, 14336, 32, 8, 1, 1, 3, 8, 112425623552 },
		{ 80, 8192, 28672, 128, 8, 8, 1, 3, 64, 978406572032 },
		{ 80, 8192, 28672, 128, 8, 8, 4, 1, 64, 978406572032 },
		{ 126, 16384, 53248, 128, 8, 8, 32, 1, 512, 5682508791808 },
		{ 128, 25872, 98304, 192, 32, 8, 64, 1, 1024, 16564174094592 },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct pen_config c = ckpt_config();
		uint64_t bytes = 0;

		c.model.type = type;
		c.model.vocab_size = 128256;
		c.model.num_layers = of[i].layers;
		c.model.hidden_size = of[i].hidden;
		c.model.ffn_hidden_size = of[i].ffn;
		c.model.num_attention_heads = of[i].heads;
		c.model.num_kv_heads = of[i].kv;
		c.model.tensor = of[i].tp;
		c.model.pipeline = of[i].pp;
		c.model.zero_stage = of[i].zero;
		for (unsigned rank = 0; rank < of[i].world; rank++) {
			struct pen_ckpt *k;

			if (!CHECK(pen__ckpt_new(&k, &c, rank, of[i].world,
						 NULL) == 0))
				return;
			bytes += pen__ckpt_bytes(k);
			pen__ckpt_free(k);
		}
		CHECK_EQ(bytes, of[i].bytes);
	}
}

static void refused(const struct pen_config *c, unsigned rank, unsigned world,
		    const char *say)
{
	struct pen_err err = { 0 };
	struct pen_ckpt *k;

	CHECK_EQ(pen__ckpt_new(&k, c, rank, world, &err), PEN_EINVAL);
	CHECK(k == NULL);
	if (!CHECK(strstr(err.msg, say) != NULL))
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
}

static void refusals(void)
{
	struct pen_config c = ckpt_config();
	int64_t big[] = { INT64_MAX, INT64_MAX };

	refused(&c, 2, 2, "rank 2 is out of range for 2 ranks");
	c.model.tensor = 2;
	refused(&c, 0, 3,
		"3 ranks are not a multiple of tensor x pipeline = 2 x 1");
	c.checkpoint.mode = 1;
	refused(&c, 0, 3, "required with checkpoint.mode=subset");
	c.model.data = 1;
	refused(&c, 0, 3, "larger than the job");
	c.model.data = INT64_MAX; /* no overflow */
	CHECK_EQ(count_files(&c, 3), 2);
	c = ckpt_config();
	c.model.pipeline = 2;
	c.model.zero_stage = 3;
	refused(&c, 0, 2, "cannot be combined with a pipeline");
	c.model.zero_stage = 4;
	refused(&c, 0, 2, "use 0, 1, 2 or 3");
	c.model.zero_stage = 1;
	c.model.num_layers = 1;
	refused(&c, 0, 2, "fewer than the 2 pipeline stages");
	c.model.num_layers = INT64_MAX;
	refused(&c, 0, 2, "exceed the limit");
	c.model.num_layers = 2;
	c.model.num_attention_heads = 0;
	refused(&c, 0, 2, "is out of range");
	c.model.num_attention_heads = 1;
	c.model.num_kv_heads = c.model.hidden_size = (int64_t)1 << 31;
	refused(&c, 0, 2, "2^62");
	c = ckpt_config();
	c.model.optimization_groups = (struct pen_opt_list){ big, 2 };
	refused(&c, 0, 1, "2^62");
	c = ckpt_config();
	c.model.pipeline = 0;
	refused(&c, 0, 1, "at least 1");
	c = ckpt_config();
	c.checkpoint.memory = 4096;
	refused(&c, 0, 1, "two blocks");
}

int main(void)
{
	ckpt_folder("layout");
	combinations();
	counts();
	llamas();
	refusals();
	return test_end();
}
