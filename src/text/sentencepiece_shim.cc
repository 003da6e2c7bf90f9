// The one file of C++: SentencePiece's classes behind the functions of sentencepiece_shim.h.
//
// Every call into the library stands in a try block, because an exception must not reach C. Encoding and decoding fail
// only where the machine has no memory left or the model is broken in a way that loading did not see.
#include "text/sentencepiece_shim.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

struct hw_spm {
    sentencepiece::SentencePieceProcessor processor;
    bool unigram = false, bpe = false;
    std::vector<bool> symbol; // of each piece: a user defined it
};

namespace {

void say(char reason[HW_SPM_REASON], const char *text) { std::snprintf(reason, HW_SPM_REASON, "%s", text); }

// The library's message without its kind and the place in its source that it begins with, "Internal: file.cc(12) [test]
// text"; where nothing is left, what stands for it.
void say(char reason[HW_SPM_REASON], const sentencepiece::util::Status &status, const char *otherwise)
{
    std::string text = status.ToString();
    for (const char *before : {"Internal: ", "] "}) {
        const size_t at = text.find(before);
        if (at != std::string::npos) text = text.substr(at + std::string(before).size());
    }
    say(reason, text.find_first_not_of(' ') == std::string::npos ? otherwise : text.c_str());
}

// The model's type is not told by the library's headers, but what the type can do is.
void find_type(hw_spm *m)
{
    std::vector<std::vector<std::string>> best;
    std::vector<std::string> sample;
    m->unigram = m->processor.NBestEncode("a", 1, &best).ok();
    m->bpe = !m->unigram && m->processor.SampleEncode("a", 1, 0.0F, &sample).ok();
}

// Fields of a message in the wire format of protocol buffers, one after another.
class Fields {
  public:
    explicit Fields(absl::string_view bytes) : left_(bytes) {}
    // False at the end, or where the bytes are no message.
    bool Next()
    {
        uint64_t tag = 0, size = 0;
        if (left_.empty() || !Number(&tag)) return false;
        number_ = static_cast<int>(tag >> 3);
        value_ = 0;
        const int type = static_cast<int>(tag & 7);
        if (type == 0) return Number(&value_);
        if (type == 1) size = 8;
        if (type == 5) size = 4;
        if ((type == 2 && !Number(&size)) || type == 3 || type == 4 || size > left_.size()) return false;
        text_ = left_.substr(0, size);
        left_.remove_prefix(size);
        return true;
    }
    int number() const { return number_; }
    uint64_t value() const { return value_; }
    absl::string_view text() const { return text_; }

  private:
    bool Number(uint64_t *out)
    {
        for (int shift = 0; !left_.empty() && shift < 64; shift += 7) {
            const auto byte = static_cast<unsigned char>(left_[0]);
            left_.remove_prefix(1);
            *out |= static_cast<uint64_t>(byte & 0x7F) << shift;
            if (byte < 0x80) return true;
        }
        return false;
    }
    absl::string_view left_, text_;
    int number_ = 0;
    uint64_t value_ = 0;
};

// The library does not tell which pieces a user defined, but the model does: its field 1 is a piece, whose field 3 is
// its type, 4 for these (sentencepiece_model.proto).
void find_symbols(hw_spm *m, absl::string_view model)
{
    for (Fields whole(model); whole.Next();) {
        if (whole.number() != 1) continue;
        bool symbol = false;
        for (Fields piece(whole.text()); piece.Next();) symbol |= piece.number() == 3 && piece.value() == 4;
        m->symbol.push_back(symbol);
    }
    m->symbol.resize(static_cast<size_t>(m->processor.GetPieceSize()));
}

class Lines : public sentencepiece::SentenceIterator {
  public:
    explicit Lines(const hw_spm_training &training) : training_(training) { Next(); }
    bool done() const override { return done_; }
    void Next() override
    {
        const char *line = nullptr;
        size_t bytes = 0;
        done_ = !training_.next(&line, &bytes, training_.context);
        if (!done_) line_.assign(line, bytes);
    }
    const std::string &value() const override { return line_; }
    sentencepiece::util::Status status() const override { return {}; }

  private:
    const hw_spm_training &training_;
    std::string line_;
    bool done_ = false;
};

// Unigram training is cut into as many parts as there are threads, whose sums are added in order: the model depends on
// their number but not on the machine. BPE only loses time by more than one.
std::unordered_map<std::string, std::string> arguments(const hw_spm_training &t)
{
    const bool identity = std::string(t.normalization) == "identity";
    return {{"model_type", t.bpe ? "bpe" : "unigram"},
            {"vocab_size", std::to_string(t.size)},
            {"hard_vocab_limit", "false"},
            {"character_coverage", std::to_string(t.coverage)},
            {"byte_fallback", t.byte_fallback ? "true" : "false"},
            {"normalization_rule_name", t.normalization},
            {"remove_extra_whitespaces", identity ? "false" : "true"},
            {"unk_id", "0"},
            {"bos_id", "1"},
            {"eos_id", "2"},
            {"pad_id", "-1"},
            {"num_threads", t.bpe ? "1" : "4"},
            {"minloglevel", "4"}};
}

} // namespace

extern "C" hw_spm *hw_spm_load(const void *model, size_t bytes, char reason[HW_SPM_REASON])
{
    try {
        auto m = std::make_unique<hw_spm>();
        const auto status = m->processor.LoadFromSerializedProto({static_cast<const char *>(model), bytes});
        if (status.ok()) {
            find_type(m.get());
            find_symbols(m.get(), {static_cast<const char *>(model), bytes});
            return m.release();
        }
        say(reason, status, "the bytes are none");
    } catch (const std::exception &e) {
        say(reason, e.what());
    }
    return nullptr;
}

extern "C" void hw_spm_free(hw_spm *m) { delete m; }

extern "C" int hw_spm_size(const hw_spm *m) { return m->processor.GetPieceSize(); }

extern "C" const char *hw_spm_piece(const hw_spm *m, int id, size_t *bytes)
{
    const std::string &piece = m->processor.IdToPiece(id);
    *bytes = piece.size();
    return piece.c_str();
}

extern "C" const char *hw_spm_unknown(const hw_spm *m, size_t *bytes)
{
    return hw_spm_piece(m, m->processor.unk_id(), bytes);
}

extern "C" hw_spm_kind hw_spm_piece_kind(const hw_spm *m, int id)
{
    const auto &p = m->processor;
    if (p.IsUnknown(id)) return HW_SPM_UNKNOWN;
    if (p.IsControl(id) || p.IsUnused(id)) return HW_SPM_OTHER;
    if (p.IsByte(id)) return HW_SPM_BYTE;
    return m->symbol[static_cast<size_t>(id)] ? HW_SPM_SYMBOL : HW_SPM_TEXT;
}

extern "C" float hw_spm_score(const hw_spm *m, int id) { return m->processor.GetScore(id); }

extern "C" bool hw_spm_is_unigram(const hw_spm *m) { return m->unigram; }

extern "C" bool hw_spm_is_bpe(const hw_spm *m) { return m->bpe; }

extern "C" bool hw_spm_encode(const hw_spm *m, const char *text, size_t bytes, hw_spm_sink sink, void *context)
{
    try {
        std::vector<std::string> pieces;
        if (!m->processor.Encode({text, bytes}, &pieces).ok()) return false;
        for (const std::string &piece : pieces) sink(piece.data(), piece.size(), context);
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

extern "C" void hw_spm_locate(const hw_spm *m, const char *text, size_t bytes, hw_spm_places sink, void *context)
{
    try {
        const auto pieces = m->processor.EncodeAsImmutableProto({text, bytes});
        for (size_t i = 0; i < pieces.pieces_size(); i++)
            sink(pieces.pieces(static_cast<int>(i)).begin(), pieces.pieces(static_cast<int>(i)).end(), context);
    } catch (const std::exception &) {
    }
}

extern "C" bool hw_spm_decode(const hw_spm *m, const hw_spm_text *pieces, size_t count, hw_spm_sink sink, void *context)
{
    try {
        std::vector<std::string> texts;
        texts.reserve(count);
        for (size_t i = 0; i < count; i++) texts.emplace_back(pieces[i].text, pieces[i].bytes);
        std::string text;
        if (!m->processor.Decode(texts, &text).ok()) return false;
        sink(text.data(), text.size(), context);
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

extern "C" bool hw_spm_train(const hw_spm_training *training, hw_spm_sink sink, void *context,
                             char reason[HW_SPM_REASON])
{
    try {
        Lines lines(*training);
        std::string model;
        const auto status = sentencepiece::SentencePieceTrainer::Train(arguments(*training), &lines, &model);
        if (status.ok()) {
            sink(model.data(), model.size(), context);
            return true;
        }
        say(reason, status, "nothing is left of the text");
    } catch (const std::exception &e) {
        say(reason, e.what());
    }
    return false;
}
