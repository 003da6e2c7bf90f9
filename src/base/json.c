/* Text and figures in JSON. RFC 8259 wants UTF-8, and jansson gives NULL for anything else, which json_pack and its like
 * then pass on; but the names of files are bytes of any kind. So whatever the user chose goes through here. Nor does it
 * have NaN or infinity: they are null. */
#include <headwise/base.h>

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *hw_json_text_of(const char *text, size_t size)
{
    json_t *string = json_stringn(text, size);
    if (string) return string;
    char *mended = malloc(3 * size + 1);
    HW_CHECK(mended, "no memory for a text of %zu bytes", size);
    string = json_stringn(mended, hw_utf8_mend(text, size, mended));
    free(mended);
    HW_CHECK(string, "no memory for a text of %zu bytes", size);
    return string;
}

json_t *hw_json_text(const char *text) { return hw_json_text_of(text, strlen(text)); }

json_t *hw_json_number(double x) { return isfinite(x) ? json_real(x) : json_null(); }
