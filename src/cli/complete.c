/*
 * Completion: `penstock --complete WORD...` prints the candidates for the last
 * word, a line each with a description after a tab, from the tables that the
 * parser uses. The scripts for bash, zsh and fish only call it, so all of them
 * always agree with the command. ":files" asks the shell to add file names.
 */
#include <string.h>

#include "cli/cli.h"
#include "emulate/config.h"
#include "make/maker.h"

static const char *const shells[] = { "bash", "zsh", "fish", NULL };

struct completion {
	const char *word; /* to be completed */
	size_t key;	  /* its length before '=', of "key=value" */
	bool files;
};

static void offer(const struct completion *c, const char *prefix,
		  const char *word, const char *end, const char *help)
{
	char text[512];

	snprintf(text, sizeof(text), "%s%s%s", prefix, word, end);
	if (!strncmp(text, c->word, strlen(c->word)))
		printf("%s\t%s\n", text, help ? help : "");
}

/* ---- settings ---- */

typedef void option_fn(struct completion *, const char *key,
		       const struct pen_option *);

static void offer_key(struct completion *c, const char *key,
		      const struct pen_option *o)
{
	offer(c, "", key, "=", o->help);
}

static void offer_names(const struct completion *c, const char *prefix,
			const char *kind)
{
	const char *name;

	for (uint32_t i = 0; (name = pen_name_at(kind, i)); i++)
		offer(c, prefix, name, "", pen_help_of(kind, name));
}

static void offer_value(struct completion *c, const char *key,
			const struct pen_option *o)
{
	static const char *const both[] = { "true", "false", NULL };
	const char *const *choice = o->choices;
	const char *dflt = o->dflt ? o->dflt : "", *name;
	char prefix[128];

	if (strlen(key) != c->key || strncmp(key, c->word, c->key))
		return;
	snprintf(prefix, sizeof(prefix), "%s=", key);
	if (!strcmp(o->type, "boolean") || !strcmp(key, "shuffle"))
		choice = both;
	for (; choice && *choice; choice++)
		offer(c, prefix, *choice, "", NULL);
	if (o->choices || choice)
		return;
	if (!strcmp(key, "store") || !strcmp(key, "format") ||
	    !strcmp(key, "sampler")) {
		if (pen_help_of(key, dflt) == NULL && *dflt)
			offer(c, prefix, dflt, "", NULL);
		offer_names(c, prefix, key);
	} else if (!strcmp(key, "to")) {
		for (unsigned i = 0; (name = pen__cells_format_at(i)); i++)
			offer(c, prefix, name, "", NULL);
	} else {
		c->files |= !strcmp(o->type, "text");
	}
}

static void each_of(struct completion *c, const char *prefix, const char *kind,
		    const char *name, option_fn *fn)
{
	struct pen_option o;
	char key[96];

	for (uint32_t i = 0; !pen_option_at(kind, name, i, &o, sizeof(o));
	     i++) {
		snprintf(key, sizeof(key), "%s%s", prefix, o.name);
		fn(c, key, &o);
	}
}

/* Options of components, such as store.direct=, once "store." is typed. */
static void each_part(struct completion *c, option_fn *fn)
{
	static const char *const kinds[] = { "store", "format", "sampler" };
	const char *name;
	char prefix[32];

	for (size_t k = 0; k < 3; k++) {
		snprintf(prefix, sizeof(prefix), "%s.", kinds[k]);
		if (strncmp(c->word, prefix, strlen(prefix)))
			continue;
		for (uint32_t i = 0; (name = pen_name_at(kinds[k], i)); i++)
			each_of(c, prefix, kinds[k], name, fn);
	}
}

static void each_opt(struct completion *c, const struct pen_opt *o,
		     option_fn *fn)
{
	for (; o && o->name; o++) {
		const struct pen_option x = option_of(o);

		fn(c, o->name, &x);
	}
}

static bool takes_workload(const struct command *cmd)
{
	return strstr(cmd->args, "WORKLOAD") || cmd->opts == pen__config_opts;
}

static void each_option(struct completion *c, const struct command *cmd,
			option_fn *fn)
{
	each_opt(c, cmd->opts, fn);
	if (takes_workload(cmd) && cmd->opts != pen__config_opts)
		each_opt(c, pen__config_opts, fn);
	if (cmd->takes_spec)
		each_of(c, "", "loader", NULL, fn);
	if (cmd->takes_spec || !strcmp(cmd->name, "gen"))
		each_part(c, fn);
	if (cmd->ddict)
		each_of(c, cmd->ddict, "ddict", NULL, fn);
}

/* ---- words ---- */

static void offer_flags(const struct completion *c, const struct command *cmd)
{
	for (const struct flag *f = cmd->flags; f && f->name; f++)
		offer(c, "", f->name, "", f->help);
	offer(c, "", "--help", "", "describe the command, with examples");
}

static void offer_workloads(const struct completion *c)
{
	const struct pen_workload *w;
	char about[256];

	for (size_t i = 0; (w = pen__workload_at(i)); i++) {
		pen__workload_about(w, about, sizeof(about));
		offer(c, "", w->name, "", about);
	}
}

static void offer_commands(const struct completion *c,
			   const struct command *const *list, size_t skip)
{
	for (; list && *list; list++)
		offer(c, "", (*list)->name + skip, "", (*list)->summary);
}

static void offer_words(struct completion *c, const struct command *cmd)
{
	static const char *const letters[] = { "dna", "rna", "dna+rna",
					       "dna+at", "protein" };
	char kind[32];
	const char *name;

	snprintf(kind, sizeof(kind), "%.*s", (int)strlen(cmd->name) - 1,
		 cmd->name);
	offer_names(c, "", kind); /* of formats, stores, ... */
	offer_commands(c, cmd->sub, strlen(cmd->name) + 1);
	if (takes_workload(cmd))
		offer_workloads(c);
	for (size_t i = 0; !strcmp(cmd->name, "gen") && i < 4; i++)
		offer(c, "", letters[i], "", "random letters");
	for (size_t i = 0;
	     !strcmp(cmd->name, "explain") && (name = explain_name(i)); i++)
		offer(c, "", name, "", NULL);
	each_option(c, cmd, offer_key);
	c->files = strstr(cmd->args, "PATH") || strstr(cmd->args, "FILE") ||
		   strstr(cmd->args, "SRC") || !strcmp(cmd->name, "compare");
}

/* The value of the flag before the word, if it takes one. */
static bool offer_argument(struct completion *c, const struct command *cmd,
			   const char *before)
{
	for (const struct flag *f = cmd->flags; f && f->name; f++)
		if (!strcmp(f->name, before) && f->arg && f->arg[0] != '[') {
			c->files = !strcmp(f->arg, "FILE") ||
				   !strcmp(f->arg, "DIR");
			return true;
		}
	return false;
}

static void complete_command(struct completion *c, const struct command *cmd,
			     const char *before)
{
	const char *eq = strchr(c->word, '=');

	if (offer_argument(c, cmd, before))
		return;
	if (c->word[0] == '-') {
		offer_flags(c, cmd);
		return;
	}
	if (!eq) {
		offer_words(c, cmd);
		return;
	}
	c->key = (size_t)(eq - c->word);
	if (cmd->takes_spec && !strncmp(c->word, "decode.", 7)) {
		char prefix[128];

		snprintf(prefix, sizeof(prefix), "%.*s=", (int)c->key, c->word);
		offer_names(c, prefix, "decoder");
		return;
	}
	each_option(c, cmd, offer_value);
}

static void complete_first(const struct completion *c)
{
	static const char *const flags[] = { "--help", "--version", "--man",
					     "--completion", NULL };

	offer_commands(c, pen__commands, 0);
	for (const char *const *f = flags; *f; f++)
		offer(c, "", *f, "", NULL);
}

void print_candidates(int argc, char **argv)
{
	struct completion c = { .word = argc ? argv[argc - 1] : "" };
	const struct command *cmd, *sub;

	if (argc > 2 && !strcmp(argv[0], "help")) {
		argc--;
		argv++;
	}
	if (argc < 2) {
		complete_first(&c);
		return;
	}
	if (!strcmp(argv[0], "help"))
		offer_commands(&c, pen__commands, 0);
	for (size_t i = 0; !strcmp(argv[0], "--completion") && shells[i]; i++)
		offer(&c, "", shells[i], "", NULL);
	cmd = find_command(argv[0]);
	if (!cmd)
		return;
	sub = argc > 2 ? find_subcommand(cmd, argv[1]) : NULL;
	complete_command(&c, sub ? sub : cmd, argv[argc - 2]);
	if (c.files)
		puts(":files");
}

/* ---- scripts ---- */

static const char bash[] =
	"_penstock()\n"
	"{\n"
	"	local line=${COMP_LINE:0:COMP_POINT} word= any= quote= files= "
	"key= c\n"
	"	local -i i from=0 open=0\n"
	"	local -a words\n"
	"	# bash keeps quotes, and replaces only what follows a '=' or "
	"':'\n"
	"	for ((i = 0; i < ${#line}; i++)); do\n"
	"		c=${line:i:1}\n"
	"		if [[ $c == \\\\ && $quote != \\' ]]; then\n"
	"			((i += 1))\n"
	"			word+=${line:i:1}\n"
	"		elif [[ $quote ]]; then\n"
	"			[[ $c == \"$quote\" ]] && quote= || word+=$c\n"
	"		elif [[ $c == [\\\"\\'] ]]; then\n"
	"			quote=$c any=1 open=${#word}\n"
	"		elif [[ $c == [[:blank:]] ]]; then\n"
	"			[[ $word$any ]] && words+=(\"$word\")\n"
	"			word= any= from=0\n"
	"		else\n"
	"			word+=$c\n"
	"			[[ $c == [=:] && $COMP_WORDBREAKS == *\"$c\"* "
	"]] &&\n"
	"				from=${#word}\n"
	"		fi\n"
	"	done\n"
	"	words+=(\"$word\")\n"
	"	[[ $quote ]] && from=$open\n"
	"	COMPREPLY=()\n"
	"	while IFS=$'\\t' read -r c _; do\n"
	"		[[ $c == :files ]] && files=1 || "
	"COMPREPLY+=(\"${c:from}\")\n"
	"	done < <(\"$1\" --complete \"${words[@]:1}\" 2>/dev/null)\n"
	"	if [[ $files ]]; then\n"
	"		[[ $word =~ ^[^/=]*= ]] && key=${BASH_REMATCH[0]}\n"
	"		# it would quote the '=' of settings, too\n"
	"		i=${#COMPREPLY[@]}\n"
	"		((i)) || compopt -o filenames 2>/dev/null\n"
	"		while IFS= read -r c; do\n"
	"			((i)) && [[ -d $c ]] && c+=/\n"
	"			c=$key$c\n"
	"			c=${c:from}\n"
	"			((i)) && [[ ! $quote ]] && printf -v c %q "
	"\"$c\"\n"
	"			COMPREPLY+=(\"$c\")\n"
	"		done < <(compgen -f -- \"${word#\"$key\"}\")\n"
	"	fi\n"
	"	[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=/] ]] &&\n"
	"		compopt -o nospace 2>/dev/null\n"
	"	return 0\n"
	"}\n"
	"complete -F _penstock penstock\n";

static const char zsh[] =
	"#compdef penstock\n"
	"_penstock()\n"
	"{\n"
	"	local line word files=\n"
	"	local -a whole shown keys described\n"
	"	for line in \"${(@f)$($words[1] --complete \\\n"
	"		\"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\" "
	"2>/dev/null)}\"; do\n"
	"		word=${line%%$'\\t'*}\n"
	"		case $word in\n"
	"		(:files) files=1 ;;\n"
	"		(*=) keys+=(\"$word\")\n"
	"			described+=(\"$word -- ${line#*$'\\t'}\") ;;\n"
	"		(?*) whole+=(\"$word\")\n"
	"			shown+=(\"$word -- ${line#*$'\\t'}\") ;;\n"
	"		esac\n"
	"	done\n"
	"	(( $#whole )) && compadd -l -d shown -a whole\n"
	"	(( $#keys )) && compadd -S '' -l -d described -a keys\n"
	"	if [[ -n $files ]]; then\n"
	"		compset -P '*='\n"
	"		_files\n"
	"	fi\n"
	"}\n"
	"if [[ $funcstack[1] == _penstock ]]; then\n"
	"	_penstock \"$@\"\n"
	"else\n"
	"	compdef _penstock penstock\n"
	"fi\n";

static const char fish[] =
	"function __penstock_complete\n"
	"	set -l words (commandline -opc)\n"
	"	set -l program $words[1]\n"
	"	set -e words[1]\n"
	"	set -l typed (commandline -ct)\n"
	"	# without quotes; the last one may be missing\n"
	"	set -l current (string unescape -- \"$typed\"\n"
	"		or string unescape -- \"$typed'\"\n"
	"		or string unescape -- \"$typed\\\"\")\n"
	"	set -l prefix (string match -r '^[^/=]*=' -- \"$current\")\n"
	"	for line in ($program --complete $words \"$current\" "
	"2>/dev/null)\n"
	"		if test \"$line\" = :files\n"
	"			set -l path (string replace -r '^[^/=]*=' '' "
	"-- \"$current\")\n"
	"			for file in (__fish_complete_path \"$path\" "
	"2>/dev/null)\n"
	"				printf '%s\\n' \"$prefix$file\"\n"
	"			end\n"
	"		else\n"
	"			printf '%s\\n' $line\n"
	"		end\n"
	"	end\n"
	"end\n"
	"complete -c penstock -f -a '(__penstock_complete)'\n";

int print_completion(const char *shell)
{
	const char *near;

	if (!shell || !strcmp(shell, "bash"))
		fputs(bash, stdout);
	else if (!strcmp(shell, "zsh"))
		fputs(zsh, stdout);
	else if (!strcmp(shell, "fish"))
		fputs(fish, stdout);
	else {
		near = pen__nearest(shell, shells);
		return complain_usage(P_UNKNOWN_NAME, "--completion",
				      near ? "unknown shell '%s'; did you mean "
					     "'%s'?"
					   : "unknown shell '%s'; use %s",
				      shell, near ? near : "bash, zsh or fish");
	}
	return EXIT_OK;
}
