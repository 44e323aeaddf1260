/*
 * The files that a rank writes and their tensors, by the rules of DLIO, exact
 * to the element. Ranks are laid out tensor parallel first, then pipeline, then
 * data: with MP = TP * PP, rank r is number r % MP of replica r / MP.
 *
 * The settings specify up to three sources, each with files of its own:
 * - model_size: one flat tensor, unless the model is a transformer
 * - layers: listed (layer_parameters: the same for every layer, so that one set
 *   of tensors is stored under the name of each layer) or by the transformer
 *   formula
 * - optimizer state: listed (optimization_groups), or three times the share of
 *   the rank of all parameters
 *
 * Without ZeRO only the first replica writes. With stages 1 and 2 it alone
 * writes the layers (one file per layer if there is a pipeline). With stage 3
 * every rank writes its share of everything.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "emulate/ckpt_int.h"

#define MOST_LAYERS 100000
#define MOST_WIDTH ((int64_t)1 << 31)
#define WHERE "model"

__extension__ typedef unsigned __int128 u128;

struct maker {
	const struct pen_config *c;
	struct pen_ckpt_plan *plan;
	struct pen_err *err;
	uint64_t tp, pp, dp; /* sizes */
	uint64_t rank, dp_rank, mp_rank, pp_rank;
	uint64_t first_layer, last_layer; /* empty if first > last */
};

static uint64_t mp(const struct maker *m)
{
	return m->tp * m->pp;
}

static struct pen_torch_state *add_file(struct maker *m, const char *name)
{
	struct pen_ckpt_plan *p = m->plan;
	struct pen_ckpt_file *f;

	if (p->nfiles == p->cap) {
		const size_t cap = p->cap ? 2 * p->cap : 8;

		f = pen__realloc(p->file, cap, sizeof(*f));
		if (!f) {
			pen__fail_nomem(m->err, WHERE, cap * sizeof(*f));
			return NULL;
		}
		p->file = f;
		p->cap = cap;
	}
	f = &p->file[p->nfiles++];
	*f = (struct pen_ckpt_file){ 0 };
	snprintf(f->name, sizeof(f->name), "%s.pt", name);
	return &f->state;
}

static int add(struct maker *m, struct pen_torch_state *s,
	       enum pen_torch_kind kind, const char *key)
{
	return pen__torch_add(s, kind, key, 0, 0) < 0
		       ? pen__fail_nomem(m->err, WHERE, sizeof(*s->item))
		       : 0;
}

static int add_tensor(struct maker *m, struct pen_torch_state *s,
		      const char *key, int dtype, u128 n)
{
	const uint64_t fits = n > UINT64_MAX ? UINT64_MAX : (uint64_t)n;

	switch (pen__torch_add(s, PEN_TORCH_TENSOR, key, dtype, fits)) {
	case PEN_ENOMEM:
		return pen__fail_nomem(m->err, WHERE, sizeof(*s->item));
	case PEN_EINVAL:
		return pen__fail(m->err, P_BAD_VALUE, WHERE,
				 "the checkpoint exceeds 2^62 bytes per rank");
	}
	return 0;
}

/* Adds tensors "0", "1", ...; sizes of 0 are skipped. */
static int add_numbered(struct maker *m, struct pen_torch_state *s,
			const u128 *n, size_t count, int dtype)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++) {
		char key[24];

		snprintf(key, sizeof(key), "%zu", i);
		if (n[i])
			rc = add_tensor(m, s, key, dtype, n[i]);
	}
	return rc;
}

/* --- model_size --- */

bool pen__ckpt_is_transformer(const struct pen_config *c)
{
	return c->model.type && !strcmp(c->model.type, "transformer");
}

static int flat_model(struct maker *m)
{
	const struct pen_config *c = m->c;
	struct pen_torch_state *s;
	char name[48];

	if (!c->model.size_bytes || pen__ckpt_is_transformer(c))
		return 0;
	snprintf(name, sizeof(name), "model_states-%" PRIu64, m->rank);
	s = add_file(m, name);
	if (!s)
		return PEN_ENOMEM;
	return add_tensor(m, s, "a", PEN_SD_INT8, c->model.size_bytes);
}

/* --- layers --- */

static bool has_layers(const struct maker *m)
{
	return m->c->model.num_layers > 0;
}

static bool listed_layers(const struct maker *m)
{
	return m->c->model.layer_parameters.n > 0;
}

/* Layers 1..L are divided among the pipeline stages. By the formula the first
 * stage also has the embedding, 0, and the last one the head and the norm, L+1
 * and L+2. */
static void choose_layers(struct maker *m)
{
	const uint64_t n = (uint64_t)m->c->model.num_layers;
	const uint64_t each = n / m->pp, rest = n % m->pp, p = m->pp_rank;
	const uint64_t before = p * each + (p < rest ? p : rest);

	m->first_layer = before + 1;
	m->last_layer = before + each + (p < rest);
	if (listed_layers(m))
		return;
	if (p == 0)
		m->first_layer = 0;
	if (p == m->pp - 1)
		m->last_layer = n + 2;
}

static u128 kv_width(const struct pen_config *c)
{
	return (u128)(uint64_t)(c->model.hidden_size /
				c->model.num_attention_heads) *
	       (uint64_t)c->model.num_kv_heads;
}

/* The tensors of one layer by the formula: returns their number, and their
 * sizes in n. */
static size_t formula(const struct maker *m, uint64_t layer, u128 n[6])
{
	const struct pen_config *c = m->c;
	const u128 h = (u128)c->model.hidden_size;
	const u128 f = (u128)c->model.ffn_hidden_size;
	const uint64_t last = (uint64_t)c->model.num_layers;
	const uint64_t shards = c->model.zero_stage < 3 ? 1 : m->dp;

	if (layer == last + 2) {
		n[0] = h / shards;
		return 1;
	}
	if (layer == 0 || layer == last + 1) {
		n[0] = h * (u128)c->model.vocab_size / m->tp / shards;
		return 1;
	}
	n[0] = n[3] = h / shards;
	n[1] = h * (h + 2 * kv_width(c)) / m->tp / shards;
	n[2] = h * h / m->tp / shards;
	n[4] = h * 2 * f / m->tp / shards;
	n[5] = h * f / m->tp / shards;
	return 6;
}

/* Adds the tensors of a layer; listed tensors are added even if no element
 * remains. */
static int layer_tensors(struct maker *m, struct pen_torch_state *s,
			 uint64_t layer)
{
	const struct pen_opt_list *list = &m->c->model.layer_parameters;
	u128 n[6];
	int rc = 0;

	if (!listed_layers(m))
		return add_numbered(m, s, n, formula(m, layer, n),
				    m->c->model.model_datatype);
	for (size_t i = 0; !rc && i < list->n; i++) {
		char key[24];

		snprintf(key, sizeof(key), "%zu", i);
		if (list->v[i] > 0)
			rc = add_tensor(m, s, key, PEN_SD_INT8,
					(uint64_t)list->v[i] / m->tp);
	}
	return rc;
}

static int layers_one_file(struct maker *m, const char *name)
{
	struct pen_torch_state *s = add_file(m, name);
	int rc = s ? 0 : PEN_ENOMEM;

	for (uint64_t l = m->first_layer; !rc && l <= m->last_layer; l++) {
		char key[24];

		snprintf(key, sizeof(key), "%" PRIu64, l);
		if (listed_layers(m) && l > m->first_layer) {
			rc = add(m, s, PEN_TORCH_SAME, key);
			continue;
		}
		rc = add(m, s, PEN_TORCH_OPEN, key);
		if (!rc)
			rc = layer_tensors(m, s, l);
		if (!rc)
			rc = add(m, s, PEN_TORCH_CLOSE, "");
	}
	return rc;
}

static int layer_files(struct maker *m)
{
	int rc = 0;

	for (uint64_t l = m->first_layer; !rc && l <= m->last_layer; l++) {
		struct pen_torch_state *s;
		char name[56];

		snprintf(name, sizeof(name),
			 "layer_%" PRIu64 "-model_%" PRIu64 "_model_states", l,
			 m->mp_rank);
		s = add_file(m, name);
		rc = s ? layer_tensors(m, s, l) : PEN_ENOMEM;
	}
	return rc;
}

static int layers(struct maker *m)
{
	const int64_t zero = m->c->model.zero_stage;
	char name[56];

	if (!has_layers(m) || m->first_layer > m->last_layer)
		return 0;
	if (zero == 0 || zero == 3) {
		snprintf(name, sizeof(name),
			 "zero_pp_rank_%" PRIu64 "_mp_rank_%" PRIu64
			 "_model_states",
			 m->dp_rank, m->mp_rank);
		return layers_one_file(m, name);
	}
	if (m->dp_rank)
		return 0;
	if (m->pp > 1)
		return layer_files(m);
	snprintf(name, sizeof(name), "model_%" PRIu64 "_model_states",
		 m->mp_rank);
	return layers_one_file(m, name);
}

/* --- optimizer state --- */

/* {"0": {a, b}, ..., "combined"}: every group twice, and their concatenation.
 */
static int listed_groups(struct maker *m, struct pen_torch_state *s)
{
	const struct pen_opt_list *list = &m->c->model.optimization_groups;
	u128 all = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < list->n; i++) {
		const u128 n = list->v[i] > 0 ? (u128)list->v[i] : 0;
		char key[24];

		if (!n)
			continue;
		all += n;
		snprintf(key, sizeof(key), "%zu", i);
		rc = add(m, s, PEN_TORCH_OPEN, key);
		if (!rc)
			rc = add_tensor(m, s, "a", PEN_SD_INT8, n);
		if (!rc)
			rc = add_tensor(m, s, "b", PEN_SD_INT8, n);
		if (!rc)
			rc = add(m, s, PEN_TORCH_CLOSE, "");
	}
	return rc ? rc : add_tensor(m, s, "combined", PEN_SD_INT8, all);
}

/* Number of parameters of the model. */
static u128 parameters(const struct pen_config *c)
{
	const u128 h = (u128)c->model.hidden_size;
	const u128 v = (u128)c->model.vocab_size;
	const u128 f = (u128)c->model.ffn_hidden_size;

	return 2 * v * h + h +
	       (u128)c->model.num_layers *
		       (2 * h + h * (h + 2 * kv_width(c)) + h * h + 3 * f * h);
}

/* Number of parameters for which a rank stores optimizer state. */
static u128 optimizer_share(const struct maker *m)
{
	return parameters(m->c) /
	       (m->c->model.zero_stage > 0 ? (u128)m->dp * mp(m) : mp(m));
}

static int optimizer(struct maker *m)
{
	const struct pen_config *c = m->c;
	const bool listed = c->model.optimization_groups.n > 0;
	struct pen_torch_state *s;
	u128 share = 0, n[6];
	char name[56];

	if (!listed && has_layers(m))
		share = optimizer_share(m);
	if (!listed && !share)
		return 0;
	snprintf(name, sizeof(name),
		 "zero_pp_rank_%" PRIu64 "_mp_rank_%" PRIu64 "_optim_states",
		 m->dp_rank, m->mp_rank);
	s = add_file(m, name);
	if (!s)
		return PEN_ENOMEM;
	if (listed)
		return listed_groups(m, s);
	for (unsigned i = 0; i < 6; i += 2) {
		n[i] = share;
		n[i + 1] = (u128)c->model.hidden_size * 5;
	}
	return add_numbered(m, s, n, 6, c->model.optimizer_datatype);
}

/*
 * The share of this rank of the size that DLIO reports. DLIO omits listed
 * tensors, and with ZeRO 2 counts the layers of replicas that write none.
 */
static void count_as_dlio(struct maker *m)
{
	const struct pen_config *c = m->c;
	const double model = (double)pen__torch_size(c->model.model_datatype),
		     optim = (double)pen__torch_size(
			     c->model.optimizer_datatype);
	u128 n[6], share = 0;

	if (!has_layers(m))
		return;
	if (!listed_layers(m) && !(c->model.zero_stage == 1 && m->dp_rank))
		for (uint64_t l = m->first_layer; l <= m->last_layer; l++)
			for (size_t i = formula(m, l, n); i-- > 0;)
				m->plan->dlio_model += (double)n[i] * model;
	if (!c->model.optimization_groups.n)
		share = optimizer_share(m);
	if (share)
		m->plan->dlio_optimizer =
			3 * optim *
			((double)share + 5 * (double)c->model.hidden_size);
}

/* --- validation --- */

static int check_formula(const struct pen_config *c, struct pen_err *err)
{
	const struct {
		const char *name;
		int64_t v, min;
	} of[] = {
		{ "model.transformer.hidden_size", c->model.hidden_size, 1 },
		{ "model.transformer.num_attention_heads",
		  c->model.num_attention_heads, 1 },
		{ "model.transformer.num_kv_heads", c->model.num_kv_heads, 0 },
		{ "model.transformer.ffn_hidden_size", c->model.ffn_hidden_size,
		  0 },
		{ "model.transformer.vocab_size", c->model.vocab_size, 0 },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (of[i].v < of[i].min || of[i].v > MOST_WIDTH)
			return pen__fail(err, P_BAD_VALUE, of[i].name,
					 "%" PRId64
					 " is out of range; use %" PRId64
					 " to %" PRId64,
					 of[i].v, of[i].min, MOST_WIDTH);
	return 0;
}

static int check_model(const struct pen_config *c, struct pen_err *err)
{
	const int64_t n = c->model.num_layers;

	if (c->model.tensor < 1 || c->model.tensor > MOST_WIDTH ||
	    c->model.pipeline < 1 || c->model.pipeline > MOST_WIDTH)
		return pen__fail(err, P_BAD_VALUE, "model.parallelism",
				 "tensor and pipeline must be at least 1");
	if (c->model.zero_stage < 0 || c->model.zero_stage > 3)
		return pen__fail(
			err, P_BAD_VALUE, "model.parallelism.zero_stage",
			"stage %" PRId64 " does not exist; use 0, 1, 2 or 3",
			c->model.zero_stage);
	if (c->model.zero_stage == 3 && c->model.pipeline > 1)
		return pen__fail(err, P_CONFLICT,
				 "model.parallelism.zero_stage",
				 "ZeRO stage 3 cannot be combined with a "
				 "pipeline of %" PRId64 " stages",
				 c->model.pipeline);
	if (n > MOST_LAYERS)
		return pen__fail(err, P_BAD_VALUE, "model.num_layers",
				 "%" PRId64 " layers exceed the limit of %d", n,
				 MOST_LAYERS);
	if (n > 0 && n < c->model.pipeline)
		return pen__fail(err, P_CONFLICT, "model.num_layers",
				 "%" PRId64
				 " layers are fewer than the %" PRId64
				 " pipeline stages",
				 n, c->model.pipeline);
	return n > 0 ? check_formula(c, err) : 0;
}

/* Determines the size of a data parallel group from the number of ranks. */
static int find_dp(struct maker *m, unsigned world)
{
	const struct pen_config *c = m->c;
	const u128 all =
		(u128)mp(m) * (u128)(c->model.data > 0 ? c->model.data : 0);

	if (c->checkpoint.mode == 0 && world % mp(m))
		return pen__fail(m->err, P_CONFLICT, "model.parallelism",
				 "%u ranks are not a multiple of tensor x "
				 "pipeline = %" PRIu64 " x %" PRIu64
				 "; start a matching number of ranks or set "
				 "checkpoint.mode=subset",
				 world, m->tp, m->pp);
	if (c->checkpoint.mode == 0) {
		m->dp = world / mp(m);
		return 0;
	}
	if (c->model.data < 1)
		return pen__fail(m->err, P_MISSING_SETTING,
				 "model.parallelism.data",
				 "required with checkpoint.mode=subset; set it "
				 "to the data parallelism of the entire job");
	if (all < world)
		return pen__fail(m->err, P_CONFLICT, "checkpoint.mode",
				 "a subset of %u ranks is larger than the job: "
				 "data x tensor x pipeline = %" PRIu64,
				 world, (uint64_t)all);
	m->dp = (uint64_t)c->model.data;
	return 0;
}

int pen__ckpt_plan(struct pen_ckpt_plan *p, const struct pen_config *c,
		   unsigned rank, unsigned world, struct pen_err *err)
{
	struct maker m = { .c = c, .plan = p, .err = err, .rank = rank };
	int rc;

	*p = (struct pen_ckpt_plan){ 0 };
	if (rank >= world)
		return pen__fail(err, P_BAD_CALL, WHERE,
				 "rank %u is out of range for %u ranks", rank,
				 world);
	rc = check_model(c, err);
	if (rc < 0)
		return rc;
	m.tp = (uint64_t)c->model.tensor;
	m.pp = (uint64_t)c->model.pipeline;
	rc = find_dp(&m, world);
	if (rc < 0)
		return rc;
	m.dp_rank = rank / mp(&m);
	m.mp_rank = rank % mp(&m);
	m.pp_rank = rank / m.tp % m.pp;
	if (c->model.zero_stage == 0 && rank >= mp(&m))
		return 0; /* replica: the first one writes */
	if (has_layers(&m))
		choose_layers(&m);
	count_as_dlio(&m);
	rc = flat_model(&m);
	if (!rc)
		rc = layers(&m);
	if (!rc)
		rc = optimizer(&m);
	if (rc < 0)
		pen__ckpt_plan_fini(p);
	for (size_t i = 0; i < p->nfiles; i++)
		p->bytes += p->file[i].state.bytes;
	return rc;
}

void pen__ckpt_plan_fini(struct pen_ckpt_plan *p)
{
	for (size_t i = 0; i < p->nfiles; i++)
		pen__torch_fini(&p->file[i].state);
	pen__free(p->file);
	*p = (struct pen_ckpt_plan){ 0 };
}
