/* Computes what a run would do, for --dry-run. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/show.h"
#include "emulate/data.h"
#include "emulate/draw.h"
#include "make/synth.h"

uint64_t pen__run_times(uint64_t epochs, uint64_t first, uint64_t every)
{
	first = first ? first : 1;
	every = every ? every : 1;
	return epochs < first ? 0 : (epochs - first) / every + 1;
}

/* Saturating multiplication. */
static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t n;

	return __builtin_mul_overflow(a, b, &n) ? UINT64_MAX : n;
}

static void count_files(struct pen_plan_figures *p,
			const struct pen_data_layout *l)
{
	char path[4096];
	struct stat sb;

	for (uint64_t i = 0; i < l->nfiles; i++) {
		pen__layout_path(l, i, path, sizeof(path));
		if (stat(path, &sb) == 0)
			continue;
		p->files_missing++;
		p->generate_bytes += pen__layout_bytes(l, i);
	}
}

/* Bytes per sample passed to the model. */
static uint64_t row_bytes(const struct pen_config *c,
			  const struct pen_data_layout *l)
{
	const struct pen_opt_list *t = &c->reader.transformed_dims;
	double n = 1, side = floor(sqrt(c->dataset.record_length_resize));

	if (!c->reader.decode)
		return 0;
	for (size_t i = 0; i < t->n; i++)
		n *= (double)t->v[i];
	if (t->n)
		return (uint64_t)n * pen_dtype_size(pen__config_dtype(
					     c->reader.transformed_type));
	if (c->dataset.record_length_resize >= 1)
		return (uint64_t)(side * side) * pen_dtype_size(l->dtype);
	n = (double)c->dataset.num_files_train * (double)l->nsamples;
	return n > 0 ? (uint64_t)((double)pen__layout_total(l, PEN_TRAIN) / n)
		     : 0;
}

/* Bytes of `used` samples out of n; 0 if samples are generated in memory. */
static uint64_t share_of(const struct pen_data_layout *l, enum pen_split split,
			 uint64_t used, uint64_t n)
{
	if (!n || pen__is_synthetic(l->c))
		return 0;
	return (uint64_t)((double)pen__layout_total(l, split) * (double)used /
			  (double)n);
}

static void plan_training(const struct pen_config *c,
			  const struct pen_data_layout *l, unsigned world,
			  struct pen_plan_figures *p)
{
	uint64_t spf = l->nsamples, used, eval_used;
	double step = pen__time_mean(&c->train.computation_time);
	uint64_t ahead = (uint64_t)c->reader.prefetch_size,
		 threads = (uint64_t)c->reader.read_threads;

	p->samples_train = p->files_train * spf;
	p->steps = p->samples_train / (c->reader.batch_size * world);
	if (c->train.total_training_steps > 0 &&
	    (uint64_t)c->train.total_training_steps < p->steps)
		p->steps = (uint64_t)c->train.total_training_steps;
	if (c->workflow.evaluation && p->files_eval) {
		p->evals = pen__run_times(c->train.epochs,
					  c->evaluation.eval_after_epoch,
					  c->evaluation.epochs_between_evals);
		p->eval_steps = p->files_eval * spf /
				(c->reader.batch_size_eval * world);
	}
	used = p->steps * c->reader.batch_size * world;
	p->read_bytes_epoch = share_of(l, PEN_TRAIN, used, p->samples_train);
	eval_used = p->eval_steps * c->reader.batch_size_eval * world;
	p->read_bytes = times(p->read_bytes_epoch, c->train.epochs) +
			p->evals * share_of(l, PEN_VALID, eval_used,
					    p->files_eval * spf);
	p->compute_s = step * (double)p->steps * (double)c->train.epochs +
		       pen__time_mean(&c->evaluation.eval_time) *
			       (double)p->eval_steps * (double)p->evals;
	if (step > 0 && c->au > 0 && p->steps)
		p->needed_rate = (double)p->read_bytes_epoch /
				 ((double)p->steps * step / c->au);
	threads = threads ? threads : 1;
	if (ahead < threads)
		ahead = threads;
	p->batch_bytes = times(c->reader.batch_size, row_bytes(c, l));
	p->memory_bytes = times(p->batch_bytes, (ahead + 2) * c->accelerators);
}

/* Number of checkpoints written during training with `steps` per epoch. */
static uint64_t checkpoints_in(const struct pen_config *c, uint64_t steps)
{
	int64_t by_step = c->checkpoint.steps_between;

	if (by_step > 0)
		return times(steps / (uint64_t)by_step, c->train.epochs);
	return by_step < 0 ? pen__run_times(c->train.epochs,
					    c->checkpoint.after_epoch,
					    c->checkpoint.epochs_between)
			   : 0;
}

static int plan_checkpoints(const struct pen_config *c, unsigned world,
			    struct pen_plan_figures *p, struct pen_err *err)
{
	for (unsigned r = 0; r < world; r++) {
		struct pen_ckpt *k;
		int rc = pen__ckpt_new(&k, c, r, world, err);

		if (rc)
			return rc;
		p->checkpoint_bytes += pen__ckpt_bytes(k);
		pen__ckpt_free(k);
	}
	p->checkpoints = c->checkpoint.num_write > 0
				 ? (uint64_t)c->checkpoint.num_write
				 : 0;
	if (c->workflow.train)
		p->checkpoints = checkpoints_in(c, p->steps);
	if (!c->workflow.train)
		p->compute_s = fabs(c->checkpoint.time_between) *
			       (double)((c->checkpoint.num_write > 0
						 ? c->checkpoint.num_write
						 : 0) +
					(c->checkpoint.num_read > 0
						 ? c->checkpoint.num_read
						 : 0));
	return 0;
}

static void miss_checkpoints(const struct pen_config *c, uint64_t steps,
			     struct pen_text *t)
{
	const int64_t by_step = c->checkpoint.steps_between;

	if (!c->workflow.checkpoint || checkpoints_in(c, steps))
		return;
	pen__text_add(t, "No checkpoint is written: ");
	if (by_step >= 0)
		pen__text_add(t,
			      "checkpoint.steps_between_checkpoints is %lld "
			      "and an epoch has %s\n",
			      (long long)by_step,
			      pen__show_counted(steps, "step").s);
	else
		pen__text_add(t,
			      "checkpoint.checkpoint_after_epoch is %llu and "
			      "train.epochs is %llu\n",
			      (unsigned long long)c->checkpoint.after_epoch,
			      (unsigned long long)c->train.epochs);
}

static void miss_evaluations(const struct pen_config *c, struct pen_text *t)
{
	if (!c->workflow.evaluation)
		return;
	if (!c->dataset.num_files_eval)
		pen__text_add(
			t,
			"No evaluation is run: dataset.num_files_eval is 0\n");
	else if (c->evaluation.eval_after_epoch > c->train.epochs)
		pen__text_add(
			t,
			"No evaluation is run: evaluation.eval_after_epoch is "
			"%llu and train.epochs is %llu\n",
			(unsigned long long)c->evaluation.eval_after_epoch,
			(unsigned long long)c->train.epochs);
}

void pen__run_misses(const struct pen_config *c, uint64_t steps,
		     struct pen_text *t)
{
	const uint64_t head = c->output.exclude_start_steps,
		       tail = c->output.exclude_end_steps;
	uint64_t block = steps;

	if (!c->workflow.train)
		return;
	if (!c->train.epochs) {
		pen__text_add(t, "No training is run: train.epochs is 0\n");
		return;
	}
	miss_checkpoints(c, steps, t);
	miss_evaluations(c, t);
	if (c->workflow.checkpoint && c->checkpoint.steps_between > 0 &&
	    (uint64_t)c->checkpoint.steps_between < block)
		block = (uint64_t)c->checkpoint.steps_between;
	if (block && (head >= block || tail >= block - head))
		pen__text_add(t,
			      "No steps are excluded from the figures: "
			      "output.metric.exclude_start_steps and "
			      "exclude_end_steps would leave none of %s\n",
			      pen__show_counted(block, "step").s);
}

int pen__run_plan_check(const struct pen_run *r, unsigned world,
			const struct pen_plan_figures *p, struct pen_err *err)
{
	const struct pen_config *c = r->c;
	struct pen_data_layout l;
	int rc;

	if (c->workflow.train && !p->steps && !r->set->lenient)
		return pen__fail_no_step("dataset", p->samples_train,
					 c->reader.batch_size, world, err);
	if (c->workflow.train && p->steps &&
	    c->train.total_training_steps > (int64_t)p->steps)
		return pen__fail_few_steps(c, p->steps, err);
	if (!c->workflow.generate_data)
		return 0;
	rc = pen__layout_init(&l, c, err);
	if (rc)
		return rc;
	rc = pen__synth_space(l.root, p->generate_bytes, err);
	pen__layout_fini(&l);
	return rc;
}

int pen__run_plan(const struct pen_config *c, unsigned world,
		  struct pen_plan_figures *p, struct pen_err *err)
{
	struct pen_data_layout l;
	int rc = 0;

	*p = (struct pen_plan_figures){ 0 };
	if (c->workflow.train || c->workflow.generate_data) {
		rc = pen__layout_init(&l, c, err);
		if (rc)
			return rc;
		p->files_train = c->dataset.num_files_train;
		p->files_eval = c->dataset.num_files_eval;
		p->data_bytes = pen__layout_total(&l, PEN_TRAIN) +
				pen__layout_total(&l, PEN_VALID);
		if (c->workflow.generate_data)
			count_files(p, &l);
		if (c->workflow.train)
			plan_training(c, &l, world, p);
		pen__layout_fini(&l);
	}
	if (c->workflow.checkpoint)
		rc = plan_checkpoints(c, world, p, err);
	return rc;
}
