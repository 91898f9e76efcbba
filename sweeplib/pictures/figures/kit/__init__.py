"""What figures are made of: panels, scales, legends, looks, text.

`chart` is the declaration of a figure, `picture` draws it by `marks`, `points` and `cells`, in `panels`, with a
`legend`; `style` has colours and fonts, `labels` texts, `fit` makes texts fit, `quantities` names what can be drawn.
"""
