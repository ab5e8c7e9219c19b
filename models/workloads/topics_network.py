"""A bidirectional LSTM for text classification: mean of its outputs over the words of a sentence."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

WIDTH, HIDDEN = 48, 64


class TopicsLSTM(nn.Module):
    def __init__(self, vocabulary, classes, width=WIDTH, hidden=HIDDEN):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, classes)
        self.dropout = nn.Dropout(0.3)

    def forward(self, tokens, mask):
        """`mask` is 1 for words and 0 for the padding after them."""
        lengths = mask.sum(1)
        packed = pack_padded_sequence(self.dropout(self.embedding(tokens)), lengths.cpu(), batch_first=True,
                                      enforce_sorted=False)
        outputs = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=tokens.shape[1])[0]
        mean = (outputs * mask[..., None]).sum(1) / lengths[:, None]
        return self.head(self.dropout(mean))
