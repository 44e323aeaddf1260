/* Output files and log lines of a run. */
#ifndef PEN_EMULATE_OUTPUT_H
#define PEN_EMULATE_OUTPUT_H

#include "emulate/metrics.h"
#include "emulate/system.h"

/*
 * Log lines go to the log file (rank 0) with the prefix and time of DLIO and,
 * without the newline, to say(), which the command connects to the terminal
 * (NULL: none). Lines that DLIO also prints have its wording, because scripts
 * search for it.
 */
enum pen_log_level { PEN_LOG_OUTPUT, PEN_LOG_WARNING, PEN_LOG_ERROR };
struct pen_log {
	void (*say)(void *arg, enum pen_log_level, const char *line);
	void *arg;
	int fd;	    /* log file, or -1 */
	bool quiet; /* not rank 0 */
};
/* Sets fd only; path NULL: no file. */
int pen__log_open(struct pen_log *, const char *path, struct pen_err *err);
void pen__log_close(struct pen_log *);
/* One line preceded by the time: "[OUTPUT] 2026-11-15T20:49:06.949188
 * Starting". */
void pen__log(struct pen_log *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void pen__log_warn(struct pen_log *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The [METRIC] block at the end. */
void pen__log_metrics(struct pen_log *, const struct pen_record *,
		      const struct pen_figures *);

/* "2026-11-15T20:49:06.949188", local time, into buf */
const char *pen__iso_time(double unix_s, char buf[32]);

/* Writes {rank}_output.json and {rank}_per_epoch_stats.json for every
 * accelerator of this process, and summary.json on rank 0. Collective (gathers
 * hosts). */
int pen__output_dlio(const struct pen_record *, const struct pen_figures *,
		     const char *dir, struct pen_err *err);

/* Writes all results with schema "penstock.result/1", see docs/result.md.
 * Collective; rank 0 writes. watch (from pen__watch_stop()) may be NULL. */
int pen__output_result(const struct pen_record *, const struct pen_figures *,
		       const struct pen_settings *,
		       const struct pen_text *watch, const char *path,
		       struct pen_err *err);

/* Writes a Chrome trace (Perfetto) of this process. */
int pen__output_trace(const struct pen_record *, const char *path,
		      struct pen_err *err);

/* --- shared by the files of this module --- */

/* The host of a rank; gathered in rank order. */
struct pen_rank_host {
	struct pen_host host;
	struct pen_disk_about disk;
	char disk_name[32];
	int rank, node, local_rank;
	unsigned naccel;
};
/* Collective; *all is NULL except on rank 0, where it has comm->size entries.
 */
int pen__hosts_gather(const struct pen_record *, struct pen_rank_host **all,
		      struct pen_err *err);

/* Places the steps of a phase in time. The record has only durations: the time
 * of the block beyond its steps (mostly barriers) is distributed evenly after
 * them, and a step starts where the previous one ends. Durations are scaled
 * down if clock differences make them longer than the block. */
struct pen_lay {
	double scale, slack; /* per step */
};
struct pen_lay pen__lay_of(const struct pen_phase *, unsigned accel);

#endif
