"""A training as a user has it: it knows of transformers, and of no weft.  python finetune.py OUTPUT_DIR MAX_STEPS [resume]"""
import sys

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, number):
        words = torch.randint(0, 500, (16,), generator=torch.Generator().manual_seed(number))
        return {"input_ids": words, "attention_mask": torch.ones_like(words), "labels": int(words[0]) % 2}


def main(output, steps, resume):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = BertForSequenceClassification(BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
                                                     intermediate_size=128, vocab_size=500))
    arguments = TrainingArguments(output, max_steps=steps, save_steps=2, save_total_limit=2, logging_steps=1, report_to="none",
                                  per_device_train_batch_size=8, use_cpu=True, disable_tqdm=True)
    result = Trainer(model, arguments, train_dataset=Sentences()).train(resume_from_checkpoint=resume)
    print(result.global_step)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), "resume" in sys.argv[3:])
