// T5, with the names of transformers and llama.cpp (GGUF). The bias of relative positions is in block 0 and serves all
// blocks of its side.
#include "model/arch/table.h"

namespace weft {
namespace {

constexpr std::string_view kNorm = "eps=layer_norm_epsilon|t5.attention.layer_norm_rms_epsilon:1e-06";
constexpr std::string_view kAttention =
    "heads=num_heads|t5.attention.head_count:8 buckets=relative_attention_num_buckets|"
    "t5.attention.relative_buckets_count:32 distance=relative_attention_max_distance:128";
constexpr std::string_view kAct = "act=dense_act_fn|feed_forward_proj:relu";

constexpr ArchRow kStem[] = {
    {"*shared", "shared|encoder.embed_tokens|token_embd", "embedding", ""},
};

constexpr ArchRow kEncoder[] = {
    {"*norm_1", "encoder.block.{}.layer.0.layer_norm|enc.blk.{}.attn_norm", "rms_norm", "<", kNorm},
    {"*query", "encoder.block.{}.layer.0.SelfAttention.q|enc.blk.{}.attn_q", "linear", "norm_1"},
    {"*key", "encoder.block.{}.layer.0.SelfAttention.k|enc.blk.{}.attn_k", "linear", "norm_1"},
    {"*value", "encoder.block.{}.layer.0.SelfAttention.v|enc.blk.{}.attn_v", "linear", "norm_1"},
    {"encoder_bias", "encoder.block.{}.layer.0.SelfAttention.relative_attention_bias|enc.blk.{}.attn_rel_b",
     "embedding", ""},
    {"*attention", "encoder.block.{}.layer.0.SelfAttention.o|enc.blk.{}.attn_o", "linear",
     "query,key,value,^encoder_bias", kAttention},
    {"sum_1", "", "add", "<+attention"},
    {"*norm_2", "encoder.block.{}.layer.1.layer_norm|enc.blk.{}.ffn_norm", "rms_norm", "sum_1", kNorm},
    {"gate", "encoder.block.{}.layer.1.DenseReluDense.wi_0|enc.blk.{}.ffn_gate", "linear", "norm_2"},
    {"*up", "encoder.block.{}.layer.1.DenseReluDense.wi_1|encoder.block.{}.layer.1.DenseReluDense.wi|enc.blk.{}.ffn_up",
     "linear", "norm_2"},
    {"*down", "encoder.block.{}.layer.1.DenseReluDense.wo|enc.blk.{}.ffn_down", "linear", "gate,up", kAct},
    {"sum_2", "", "add", "sum_1+down"},
};

constexpr ArchRow kEncoderEnd[] = {
    {"encoded", "encoder.final_layer_norm|enc.output_norm", "rms_norm", "<", kNorm},
};

constexpr ArchRow kDecoder[] = {
    {"*norm_1", "decoder.block.{}.layer.0.layer_norm|dec.blk.{}.attn_norm", "rms_norm", "<", kNorm},
    {"*query", "decoder.block.{}.layer.0.SelfAttention.q|dec.blk.{}.attn_q", "linear", "norm_1"},
    {"*key", "decoder.block.{}.layer.0.SelfAttention.k|dec.blk.{}.attn_k", "linear", "norm_1"},
    {"*value", "decoder.block.{}.layer.0.SelfAttention.v|dec.blk.{}.attn_v", "linear", "norm_1"},
    {"decoder_bias", "decoder.block.{}.layer.0.SelfAttention.relative_attention_bias|dec.blk.{}.attn_rel_b",
     "embedding", ""},
    {"*attention", "decoder.block.{}.layer.0.SelfAttention.o|dec.blk.{}.attn_o", "linear",
     "query,key,value,^decoder_bias", kAttention},
    {"sum_1", "", "add", "<+attention"},
    {"*norm_x", "decoder.block.{}.layer.1.layer_norm|dec.blk.{}.cross_attn_norm", "rms_norm", "sum_1", kNorm},
    {"*query_x", "decoder.block.{}.layer.1.EncDecAttention.q|dec.blk.{}.cross_attn_q", "linear", "norm_x"},
    {"*key_x", "decoder.block.{}.layer.1.EncDecAttention.k|dec.blk.{}.cross_attn_k", "linear", "encoded"},
    {"*value_x", "decoder.block.{}.layer.1.EncDecAttention.v|dec.blk.{}.cross_attn_v", "linear", "encoded"},
    {"cross_bias", "decoder.block.{}.layer.1.EncDecAttention.relative_attention_bias|dec.blk.{}.cross_attn_rel_b",
     "embedding", ""},
    {"*attention_x", "decoder.block.{}.layer.1.EncDecAttention.o|dec.blk.{}.cross_attn_o", "linear",
     "query_x,key_x,value_x,^cross_bias", "heads=num_heads|t5.attention.head_count:8"},
    {"sum_x", "", "add", "sum_1+attention_x"},
    {"*norm_2", "decoder.block.{}.layer.2.layer_norm|dec.blk.{}.ffn_norm", "rms_norm", "sum_x", kNorm},
    {"gate", "decoder.block.{}.layer.2.DenseReluDense.wi_0|dec.blk.{}.ffn_gate", "linear", "norm_2"},
    {"*up", "decoder.block.{}.layer.2.DenseReluDense.wi_1|decoder.block.{}.layer.2.DenseReluDense.wi|dec.blk.{}.ffn_up",
     "linear", "norm_2"},
    {"*down", "decoder.block.{}.layer.2.DenseReluDense.wo|dec.blk.{}.ffn_down", "linear", "gate,up", kAct},
    {"sum_2", "", "add", "sum_x+down"},
};

constexpr ArchRow kHeads[] = {
    {"norm", "decoder.final_layer_norm|dec.output_norm", "rms_norm", "<", kNorm},
    {"head", "lm_head|output", "linear", "norm|<", "", "shared"},
};

constexpr ArchSection kSections[] = {
    {.rows = kStem, .output = "shared"},
    {.rows = kEncoder, .output = "sum_2", .repeated = true},
    {.rows = kEncoderEnd, .output = "encoded|<"},
    {.rows = kDecoder, .output = "sum_2", .input = "shared", .repeated = true},
    {.rows = kHeads, .output = "head|norm|<"},
};

}  // namespace

const ArchTable kArchT5 = {
    .family = "t5",
    .model_types = "t5 mt5",
    .class_names = "T5 MT5",
    .prefixes = "transformer.",
    .ignored = "",
    .ties_by_default = true,
    .sections = kSections,
};

}  // namespace weft
