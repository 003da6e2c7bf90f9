/* The smallest model that can be studied, for the tests of the report. */
#include "support_model.h"
#include "support_report.h"

#include "support_files.h"

void report_begin_single(void)
{
    report_begin();
    hw_arena *arena = hw_arena_new(0);
    const char *settings = hw_arena_string(arena,
                                           "model.heads=1;model.encoder_layers=1;model.decoder_layers=1;data.dir=%s;"
                                           "data.source=en;data.target=fr;data.train=train;text.shared_vocabulary=true",
                                           scratch_path("."));
    hw_bundle *b = tiny_bundle(arena, tiny_config(arena, settings), "the cat le chat", NULL);
    save_bundle(b, scratch_path("model"));
    hw_bundle_free(b);
    hw_arena_free(arena);
}
