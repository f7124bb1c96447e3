// SPDX-License-Identifier: Apache-2.0
// Every kind of name in a script, spelt wrongly: where the caret stands, and which word is suggested.
#include <stdio.h>
#include <string.h>

#include "tests/support/run_suite.h"
#include "tracer/probe/resolve.h"
#include "tracer/probe/script.h"

// A function take(struct item *item, int count), whose item has size and name; it returns such an item.
static int resolve(struct probe_resolver *resolver, const char *const *patterns, size_t pattern_count,
                   const struct probe_path *path, struct probe_recipe *recipe, struct probe_unresolved *why)
{
    static const char *const arguments[] = {"item", "count"}, *const members[] = {"size", "name"};
    (void)resolver, (void)patterns, (void)pattern_count;
    for (uint32_t i = 0; i < path->count; i++) {
        const bool is_argument = path->steps[i].kind == PROBE_STEP_ARGUMENT;
        const char *const *words = is_argument ? arguments : members;
        bool is_known = false;
        for (unsigned k = 0; k < 2; k++) {
            is_known |= strlen(words[k]) == path->steps[i].name_length &&
                        memcmp(words[k], path->steps[i].name, path->steps[i].name_length) == 0;
            why->words[k] = words[k];
        }
        if (is_known)
            continue;
        why->word_count = 2;
        why->step = i;
        snprintf(why->text, sizeof why->text, "there is none");
        return -1;
    }
    *recipe = (struct probe_recipe){
        .field = path->is_result ? QUT_PROBE_RETVAL : QUT_PROBE_ARG0, .load_count = 1, .last_bytes = 8, .bits = 64};
    return 0;
}

static const struct {
    const char *script;
    unsigned column;        // from 1 on
    const char *wrong;      // what is pointed at
    const char *suggestion; // NULL: none is near
} mistakes[] = {
    // Places.
    {"entr:f { }", 1, "entr", "entry"},
    {"etnry:f { }", 1, "etnry", "entry"},
    {"Entry:f { }", 1, "Entry", "entry"},
    {"retrun:f { }", 1, "retrun", "return"},
    {"ret:f { }", 1, "ret", NULL}, // as far from entry as from return
    {"alocc { }", 1, "alocc", "alloc"},
    {"Alloc { }", 1, "Alloc", "alloc"},
    {"malloc { }", 1, "malloc", "alloc"},
    {"fre { }", 1, "fre", "free"},
    {"lok { }", 1, "lok", "lock"},
    {"thow { }", 1, "thow", "throw"},
    {"cach { }", 1, "cach", "catch"},
    {"throw { @[str(typ)] = count() }", 15, "typ", "type"},
    {"unlok { }", 1, "unlok", "unlock"},
    {"tmier:1s { }", 1, "tmier", "timer"},
    {"interval:1s { }", 1, "interval", "timer"},
    {"uprobe:f { }", 1, "uprobe", "entry"},
    {"uretprobe:f { }", 1, "uretprobe", "return"},
    {"begn { }", 1, "begn", "begin"},
    {"emd { }", 1, "emd", "end"},
    {"cal:f in g { }", 1, "cal", "call"},
    {"entry:f in g { }", 1, "entry", "call"},
    {"kprobe:f { }", 1, "kprobe", NULL},
    {"entry:f, retrn:g { }", 10, "retrn", "return"},
    {"entry:f { @ = count() }\nemd { }", 25, "emd", "end"},
    // Values that are there by themselves, and functions.
    {"entry:f { @ = sum(agr0) }", 19, "agr0", "arg0"},
    {"entry:f { @ = sum(arg6) }", 19, "arg6", "arg0"},
    {"return:f { @ = sum(retvla) }", 20, "retvla", "retval"},
    {"return:f { @ = sum(duratoin) }", 20, "duratoin", "duration"},
    {"entry:f { @ = sum(tmie) }", 19, "tmie", "time"},
    {"entry:f { @ = sum(nsecs) }", 19, "nsecs", "time"},
    {"entry:f { @[tdi] = count() }", 13, "tdi", "tid"},
    {"entry:f { @[pd] = count() }", 13, "pd", "pid"},
    {"entry:f { @[srt(arg0)] = count() }", 13, "srt", "str"},
    {"entry:f { @[strr(arg0)] = count() }", 13, "strr", "str"},
    {"entry:f { @[stcak()] = count() }", 13, "stcak", "stack"},
    {"entry:f { @[ustack] = count() }", 13, "ustack", "stack"},
    {"entry:f { @ = sum(uint64(arg0)) }", 19, "uint64", "u64"},
    {"entry:f { @ = sum(u23(arg0)) }", 19, "u23", "u32"},
    {"entry:f /cdo == 1/ { }", 10, "cdo", NULL},
    {"alloc { @ = sum(sizze) }", 17, "sizze", "size"},
    {"free { @ = sum(adress) }", 16, "adress", "address"},
    {"unlock { @ = sum(hled) }", 18, "hled", "held"},
    // Aggregations.
    {"entry:f { @ = cuont() }", 15, "cuont", "count"},
    {"entry:f { @ = smu(arg0) }", 15, "smu", "sum"},
    {"entry:f { @ = histo(arg0) }", 15, "histo", "hist"},
    {"entry:f { @ = quantize(arg0) }", 15, "quantize", "hist"},
    {"entry:f { @ = lhits(arg0, 0, 9, 1) }", 15, "lhits", "lhist"},
    {"entry:f { @ = averag(arg0) }", 15, "averag", NULL},
    // Arguments, and members.
    {"entry:f { @ = sum(arg->item) }", 19, "arg", "args"},
    {"entry:f { @ = sum(ags->item) }", 19, "ags", "args"},
    {"entry:f { @ = sum(args->itme) }", 25, "itme", "item"},
    {"entry:f { @ = sum(args->cuont) }", 25, "cuont", "count"},
    {"entry:f { @ = sum(args->item->sice) }", 31, "sice", "size"},
    {"entry:f { @[str(args->item->nmae)] = count() }", 29, "nmae", "name"},
    {"return:f { @ = sum(retvl->size) }", 20, "retvl", "retval"},
    {"return:f { @ = sum(retval->siez) }", 28, "siez", "size"},
    // Statements.
    {"entry:f { pritnf(\"\") }", 11, "pritnf", "printf"},
    {"entry:f { @ = count() } end { prnit(@) }", 31, "prnit", "print"},
    {"entry:f { @ = count() } end { claer(@) }", 31, "claer", "clear"},
    {"entry:f { @ = count() } end { delete(@) }", 31, "delete", "clear"},
    {"entry:f { fi (1) { } }", 11, "fi", "if"},
    {"entry:f { if (1) { } esle { } }", 22, "esle", "else"},
    // Maps.
    {"entry:f { @hits = count() } end { print(@hist) }", 41, "@hist", "@hits"},
    {"entry:f { @hits = count() } end { clear(@Hits) }", 41, "@Hits", "@hits"},
    {"entry:f { @since[tid] = time } return:f { @ = sum(time - @sicne[tid]) }", 58, "@sicne", "@since"},
    {"entry:f { @one = pid; @other = tid } return:f /@since != 0/ { @ = count() }", 48, "@since", NULL},
    {"entry:f { @one = pid } return:f /@since != 0/ { @n = count(); @m = count() }", 34, "@since", NULL},
};

static void check_mistake(size_t at)
{
    struct probe_resolver resolver = {resolve};
    struct probe_script script;
    struct probe_diagnostic why;
    const char *text = mistakes[at].script, *wrong = mistakes[at].wrong;
    ck_assert_msg(probe_compile_with(text, strlen(text), &resolver, &script, &why) == -1, "%s", text);
    probe_script_free(&script);
    ck_assert_msg(why.at + 1 == mistakes[at].column, "%s: column %u: %s", text, why.at + 1, why.text);
    ck_assert_msg(why.length == strlen(wrong) && memcmp(text + why.at, wrong, why.length) == 0, "%s: %u characters",
                  text, why.length);
    char wanted[64];
    snprintf(wanted, sizeof wanted, ": did you mean \"%s\"?", mistakes[at].suggestion ? mistakes[at].suggestion : "");
    const char *said = strstr(why.text, ": did you mean");
    ck_assert_msg(mistakes[at].suggestion ? said && strcmp(said, wanted) == 0 : !said, "%s: %s", text, why.text);
}

START_TEST(names_that_are_near_are_suggested)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        check_mistake(i);
}
END_TEST

START_TEST(what_is_right_is_not_doubted)
{
    static const char *const scripts[] = {
        "entry:f { @ = sum(args->item->size + args->count) } return:f { @n[str(retval->name)] = count() }",
        "return:f /@since[tid] != 0/ { @ = sum(time - @since[tid]) } entry:f { @since[tid] = time }", // filled below
        "unlock /@__lock_since[address] != 0/ { @ = count() }", // filled by what is ours
    };
    struct probe_resolver resolver = {resolve};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        struct probe_script script;
        struct probe_diagnostic why;
        ck_assert_msg(probe_compile_with(scripts[i], strlen(scripts[i]), &resolver, &script, &why) == 0, "%s: %s",
                      scripts[i], why.text);
        probe_script_free(&script);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hints");
    TCase *all = tcase_create("all");
    tcase_add_test(all, names_that_are_near_are_suggested);
    tcase_add_test(all, what_is_right_is_not_doubted);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
